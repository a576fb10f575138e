# make book: the course's pages as a site in build/book, with pip's packages in build/book-python.
# SERVE=yes serves it on this machine, PDF=yes prints it; STRICT=yes, for the tests: a warning is an error.

book_python := $(TOP)/build/book-python
book_pip    := $(book_python)/installed
PYTHON ?= python3
PORT ?= 8000
chromium = $(firstword $(shell command -v chromium chromium-browser google-chrome))

.PHONY: book
book: $(book_pip)
	@$(book_python)/bin/python $(TOP)/book/pages.py $(TOP)/build/book-pages
	@$(book_python)/bin/python -m sphinx -q -j $(jobs) $(if $(STRICT),-W --keep-going) -b html -c $(TOP)/book \
	    -d $(TOP)/build/book-doctrees $(TOP)/build/book-pages $(TOP)/build/book
	@echo 'The book is in build/book: open build/book/index.html in a browser (make book SERVE=yes serves it).'
ifeq ($(PDF),yes)
	@$(if $(chromium),,echo 'make book PDF=yes needs chromium to print, by whatever name' >&2; exit 1)
	@$(book_python)/bin/python $(TOP)/book/print.py $(TOP)/build/book $(chromium) $(TOP)/build/book.pdf
	@echo 'And as one PDF: build/book.pdf'
endif
ifeq ($(SERVE),yes)
	@$(book_python)/bin/python -c 'import socket; socket.create_server(("127.0.0.1", $(PORT)))' 2>/dev/null || \
	    { echo 'make book: port $(PORT) is taken; another one: make book SERVE=yes PORT=8001' >&2; exit 1; }
	@echo 'Serving it at http://127.0.0.1:$(PORT)/ until you press Ctrl-C.'
	@$(book_python)/bin/python -m http.server --bind 127.0.0.1 --directory $(TOP)/build/book $(PORT)
endif

# What pip installs, once for each state of the list.
$(book_pip): $(TOP)/book/requirements.txt
	@INSTALL=$(INSTALL) $(TOP)/book/python.sh $(PYTHON) $(book_python) $<
	@touch $@

# make slides: a deck for each part and each half day, in a folder that needs nothing else. Only reveal.js is taken from the package.
.PHONY: slides
slides: $(book_python)/slides
	@$(book_python)/bin/python $(TOP)/book/slides/make.py $(TOP)/build/slides
	@echo 'The slides are in build/slides: open build/slides/index.html in a browser.'

$(book_python)/slides: $(book_pip) $(TOP)/book/slides/requirements.txt
	@$(book_python)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $(TOP)/book/slides/requirements.txt
	@touch $@
