# How a lesson is built, for the top Makefile (all lessons) and for each lesson's own.
# Chosen on the command line or in the environment:
#   BACKEND    auto (default), cpu or cuda     MPICC      MPI's C compiler (mpicc)
#   CUDA_HOME  the CUDA Toolkit                NCCL_HOME  NCCL, where it is not in the former
#   SANITIZE=1 (cpu) AddressSanitizer and UndefinedBehaviorSanitizer

TOP := $(patsubst %/common/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
BACKEND ?= auto
MPICC ?= mpicc
CFLAGS ?= $(if $(SANITIZE),-O1,-O2) -g
WARNINGS ?= -Wall -Wextra

# --- Where CUDA and NCCL are ---------------------------------------------------------

ifeq ($(CUDA_HOME),)
CUDA_HOME := $(firstword $(patsubst %/include/cuda_runtime.h,%,$(wildcard \
    $(patsubst %/bin/nvcc,%,$(shell command -v nvcc 2>/dev/null))/include/cuda_runtime.h \
    /usr/local/cuda/include/cuda_runtime.h /usr/include/cuda_runtime.h)))
endif
ifeq ($(NCCL_HOME),)
NCCL_HOME := $(firstword $(patsubst %/include/nccl.h,%,$(wildcard \
    $(CUDA_HOME)/include/nccl.h /usr/local/include/nccl.h /usr/include/nccl.h)))
endif
has_cuda := $(wildcard $(CUDA_HOME)/include/cuda_runtime.h)
has_nccl := $(wildcard $(NCCL_HOME)/include/nccl.h)
has_gpu := $(or $(wildcard /dev/nvidia[0-9]*),$(findstring GPU,$(shell nvidia-smi -L 2>/dev/null)))

# --- Which build ---------------------------------------------------------------------

ifeq ($(BACKEND),auto)
  ifeq ($(has_cuda),)
    backend := cpu
    why := no CUDA Toolkit found; CUDA_HOME says where it is
  else ifeq ($(has_nccl),)
    backend := cpu
    why := no NCCL found; NCCL_HOME says where it is
  else ifeq ($(has_gpu),)
    backend := cpu
    why := no GPU is visible here; make BACKEND=cuda builds for GPUs all the same
  else
    backend := cuda
    why := CUDA in $(CUDA_HOME), NCCL in $(NCCL_HOME), and a GPU is visible
  endif
else
  backend := $(BACKEND)
  why := as asked
endif
ifeq ($(filter cpu cuda,$(backend)),)
  $(error BACKEND=$(BACKEND) is none of auto, cpu, cuda)
endif

needs_build := $(if $(MAKECMDGOALS),$(filter-out help clean cpu-flags cpu-forms cpu-standin cuda-flags check-library clean-lesson plot timeline profile exercises solution starters,$(MAKECMDGOALS)),all)
ifneq ($(needs_build),)
  ifeq ($(backend),cuda)
    ifeq ($(has_cuda),)
      $(error BACKEND=cuda, but no CUDA Toolkit: set CUDA_HOME to the folder with include/cuda_runtime.h, or take BACKEND=cpu)
    else ifeq ($(has_nccl),)
      $(error BACKEND=cuda, but no NCCL: set NCCL_HOME to the folder with include/nccl.h, or take BACKEND=cpu)
    endif
  endif
endif

# --- Flags ---------------------------------------------------------------------------

cpu_build := $(TOP)/build/cpu$(if $(SANITIZE),-sanitize)
cpu_library := $(cpu_build)/libnccl-cpu.a
cpu_shared := $(cpu_build)/libnccl-cpu.so
cpu_check := $(cpu_build)/libnccl-check.so
cuda_build := $(TOP)/build/cuda
cuda_check := $(cuda_build)/libnccl-check.so
OBJCOPY ?= objcopy
NM ?= nm
, := ,
sanitizers := $(if $(SANITIZE),-fsanitize=address$(,)undefined -fno-omit-frame-pointer)
# A report names the lines of calls: sibling calls are off, since a call in tail position
# would hide who made it, and addr2line knows the files of older debug information better.
cpu_any := -gdwarf-4 -fno-optimize-sibling-calls -I$(TOP)/cpu/include $(sanitizers)
# It also says when a variable is gone that a queued function is to have: gcc is kept from making a
# function and the only one that calls it one, which would give both the same variables.
cpu_compile := $(cpu_any)$(if $(filter cpu,$(backend)), $(shell \
    flag=-fno-inline-functions-called-once; $(MPICC) $$flag -Werror -E -x c /dev/null >/dev/null 2>&1 && echo $$flag))
# The lines of the library itself nobody asks for: without them programs link, and reports come, in less
# time. SANITIZE=1 has them, and make LIBRARY_DEBUG=-g the variables, too.
LIBRARY_DEBUG ?= $(if $(SANITIZE),-g1,-g0)
library_compile := $(cpu_any) $(LIBRARY_DEBUG)
cpu_link := $(cpu_library) $(sanitizers) -lm -ldl -lrt -pthread

library_dir = $(firstword $(wildcard $(addprefix $(1)/,lib64 lib lib/x86_64-linux-gnu)))
cuda_lib := $(call library_dir,$(CUDA_HOME))
nccl_lib := $(call library_dir,$(NCCL_HOME))
# The compiler's own folder, given again, would hide C++'s headers.
cuda_compile := $(addprefix -isystem ,$(filter-out /usr/include, \
    $(sort $(addsuffix /include,$(CUDA_HOME) $(NCCL_HOME)))))
cuda_link := -L$(cuda_lib) -Wl,-rpath,$(cuda_lib) -L$(nccl_lib) -Wl,-rpath,$(nccl_lib) \
    -lnccl -lcudart -lm

lesson_compile := -std=c11 $(CFLAGS) $(WARNINGS) -I$(TOP)/common
lesson_library := $(if $(filter cpu,$(backend)),$(cpu_library))

# What a lesson may include: common/, and its own folder.
headers := $(wildcard $(TOP)/common/*.h $(TOP)/[0-9][0-9]-*/*.h)

# --- Rules ---------------------------------------------------------------------------

# PROGRAM is set by a lesson's Makefile; the top Makefile builds them all, and the program of
# common/cuda.md.
programs := $(if $(PROGRAM),$(CURDIR)/$(PROGRAM),$(basename $(wildcard \
    $(TOP)/[0-9][0-9]-*/*.c $(TOP)/common/cuda.c)))

.DEFAULT_GOAL := all
.PHONY: all announce clean-lesson
all: $(programs)

announce:
	@echo 'BACKEND=$(backend) ($(why))'

# What the programs were last built with: changes when the choice does, so that no program
# and no object outlives its build.
config := $(backend) $(MPICC) $(CFLAGS) $(WARNINGS) $(if $(filter cuda,$(backend)),$(CUDA_HOME) $(NCCL_HOME)) $(SANITIZE)
config_file := $(TOP)/build/config
ifneq ($(needs_build),)
  ifneq ($(config),$(file <$(config_file)))
    $(shell mkdir -p $(TOP)/build)
    $(file >$(config_file),$(config))
  endif
endif

$(programs): %: %.c $(headers) $(config_file) $(lesson_library) | announce
	$(MPICC) $(lesson_compile) $($(backend)_compile) $< $($(backend)_link) $(if $(findstring cublas,$(file <$<)),$(if $(filter cuda,$(backend)),-lcublas)) -o $@

cpu_objects := $(patsubst $(TOP)/cpu/src/%.c,$(cpu_build)/%.o,$(wildcard $(TOP)/cpu/src/*.c))
cpu_headers := $(wildcard $(TOP)/cpu/include/*.h $(TOP)/cpu/src/*.h) $(TOP)/common/build.mk
cpu_stamp := $(cpu_build)/config
cpu_settings := $(MPICC) $(CFLAGS) $(LIBRARY_DEBUG) $(WARNINGS)
ifneq ($(cpu_settings),$(file <$(cpu_stamp)))
  ifneq ($(filter-out help clean clean-lesson,$(or $(MAKECMDGOALS),all)),)
    $(shell mkdir -p $(cpu_build))
    $(file >$(cpu_stamp),$(cpu_settings))
  endif
endif

# Where the sums are made: -O2 would make them one by one. Products are rounded before they
# are added, on every processor: else ranks on different machines would differ in the last bit.
$(cpu_build)/number.o $(cpu_build)/blas.o: private vectorized := -O3 -ffp-contract=off
# Where the modelled clock finds its machines; and no multiply-add in one step: the same digits
# everywhere.
$(cpu_build)/machines.o: private machines := -DCPU_MACHINES='"$(TOP)/cpu/machines"'
$(cpu_build)/clock.o: private machines := -ffp-contract=off
# The mpirun that belongs to this mpicc (mpicc.mpich: mpirun.mpich).
mpirun := $(if $(findstring /,$(MPICC)),$(dir $(MPICC)))$(if $(findstring mpicc,$(notdir $(MPICC))),$(subst mpicc,mpirun,$(notdir $(MPICC))),mpirun)
$(cpu_build)/usher.o: private machines := -DMPIRUN='"$(mpirun)"'
$(cpu_build)/%.o: $(TOP)/cpu/src/%.c $(cpu_headers) $(cpu_stamp)
	$(MPICC) -std=gnu11 -fwrapv -fPIC -fvisibility=hidden $(CFLAGS) $(vectorized) $(WARNINGS) $(library_compile) $(machines) -c $< -o $@

# The stand-in as one object, in which the names of CUDA, cuBLAS, NCCL and MPI are seen, and
# no others.
$(cpu_build)/standin.o: $(cpu_objects)
	$(LD) -r $^ -o $@
	$(OBJCOPY) --localize-hidden $@

# The front and the judge. What they are linked in front of the stand-in with are names that
# both have: below, NCCL's are pncclX then, as in NCCL, and the others standin_X.
check_sources := $(wildcard $(TOP)/check/*.c $(TOP)/check/front/*.c)
check_headers := $(wildcard $(TOP)/check/*.h $(TOP)/check/front/*.h $(TOP)/check/front/channels.list $(TOP)/cpu/include/*.h) \
    $(TOP)/common/build.mk
check_compile = $(MPICC) -std=gnu11 -fPIC -fno-semantic-interposition $(CFLAGS) $(WARNINGS) -I$(TOP)/check/front
made_of = $(patsubst $(TOP)/check/%.c,$(1)/%.o,$(check_sources)) $(1)/front/mpi_made.o
check_public := cuda[A-Z]* cublas[A-Z]* nccl[A-Z]* MPI_* read write pread pread64 pwrite pwrite64 readv writev \
    preadv preadv64 preadv2 pwritev pwritev64 pwritev2 recv recvfrom recvmsg send sendto sendmsg fread fwrite fgets fputs \
    aio_read aio_read64 aio_write aio_write64 mlockall free realloc munmap pthread_create pthread_join thrd_join pthread_sigmask sigprocmask sigaction signal __sysv_signal \
    $(shell sed -n 's/^[A-Z_]*(\(.*\))$$/\1/p' $(TOP)/check/front/channels.list)

check_exported := $(check_public) __cuda* cuCtx* cuStream* cuEvent* cuMem* cuGraph* __libc_start_main

$(addsuffix /front,$(cpu_build)/check $(cuda_build)/check) $(cpu_build)/check-shared:
	@mkdir -p $@
$(TOP)/build/mpi_made.c: $(TOP)/check/front/mpi.list $(TOP)/check/front/mpi.awk
	awk -f $(TOP)/check/front/mpi.awk $< >$@
# The judge does not ask what it is linked with: it is compiled once. In a library its variables of
# a thread are found as fast as in a program (initial-exec), since it is there from the start.
cpu_check_compile = $(check_compile) -ftls-model=initial-exec $(library_compile)
$(cpu_build)/check/%.o: $(TOP)/check/%.c $(check_headers) $(cpu_stamp) | $(cpu_build)/check/front
	$(cpu_check_compile) -c $< -o $@
$(cpu_build)/check/front/%.o: $(TOP)/check/front/%.c $(check_headers) $(cpu_stamp) | $(cpu_build)/check/front
	$(cpu_check_compile) -DFRONT_LINKED -c $< -o $@
$(cpu_build)/check/front/mpi_made.o: $(TOP)/build/mpi_made.c $(check_headers) $(cpu_stamp) | $(cpu_build)/check/front
	$(cpu_check_compile) -DFRONT_LINKED -c $< -o $@

check_linked := $(call made_of,$(cpu_build)/check)
# What is built is said first; cpu-flags prints nothing but the flags.
ifneq ($(needs_build),)
$(cpu_objects) $(check_linked) $(TOP)/build/mpi_made.c: | announce
endif
$(cpu_build)/front.o: $(check_linked)
	$(LD) -r $^ -o $@
$(cpu_build)/names: $(cpu_build)/front.o $(cpu_build)/standin.o
	$(NM) -g --defined-only $^ | awk '/^$$/ { next } /:$$/ { file++; next } \
	    file == 1 { wrapped[$$3]; next } !($$3 in wrapped) { next } \
	    { print $$3, ($$3 ~ /^nccl/ ? "p" : "standin_") $$3 }' >$@
$(cpu_build)/whole.o: $(cpu_build)/front.o $(cpu_build)/standin.o $(cpu_build)/names
	$(OBJCOPY) --redefine-syms=$(cpu_build)/names $(cpu_build)/standin.o $(cpu_build)/below.o
	$(LD) -r $(cpu_build)/front.o $(cpu_build)/below.o -o $@
	$(OBJCOPY) --wildcard $(patsubst %,-G '%',$(check_public) $(if $(SANITIZE),__lsan* dlclose *asprintf*)) $@
	$(OBJCOPY) --wildcard --weaken-symbol='MPI_*' $@ # a program may have its own, as MPI lets it
$(cpu_library): $(cpu_build)/whole.o
	@rm -f $@
	$(AR) rcs $@ $<

# The two houses apart: the stand-in without checks, and what is loaded before it.
$(cpu_shared): $(cpu_build)/standin.o
	$(MPICC) -shared -Wl,-Bsymbolic $< $$($(NM) -g --defined-only $< | \
	    awk '$$3 ~ /^nccl/ { print "-Wl,--defsym=p" $$3 "=" $$3 }') \
	    $(sanitizers) -lm -ldl -pthread -o $@
$(cpu_build)/check-shared/%.o: $(TOP)/check/front/%.c $(check_headers) $(cpu_stamp) | $(cpu_build)/check-shared
	$(cpu_check_compile) -c $< -o $@
$(cpu_build)/check-shared/mpi_made.o: $(TOP)/build/mpi_made.c $(check_headers) $(cpu_stamp) | $(cpu_build)/check-shared
	$(cpu_check_compile) -c $< -o $@
$(cpu_check): $(filter-out $(cpu_build)/check/front/%,$(check_linked)) \
    $(patsubst $(cpu_build)/check/front/%,$(cpu_build)/check-shared/%,$(filter $(cpu_build)/check/front/%,$(check_linked)))
	printf '{ global: %s local: *; };\n' '$(patsubst %,%;,$(check_exported))' >$(cpu_build)/check-shared/public
	$(MPICC) -shared -Wl,--version-script=$(cpu_build)/check-shared/public $^ -ldl -pthread -lrt -o $@

# The same against the headers of the real CUDA and NCCL: what nccl-check loads. It needs no
# GPU, and nothing of CUDA or NCCL is linked: what is below is found when the program runs.
cuda_stamp := $(cuda_build)/config
ifneq ($(filter check-library cuda-flags,$(MAKECMDGOALS)),)
  ifeq ($(filter cpu,$(BACKEND)),)
    ifeq ($(and $(has_cuda),$(has_nccl)),)
      $(error $(MAKECMDGOALS) needs the headers of CUDA and NCCL: set CUDA_HOME and NCCL_HOME to the folders with include/cuda_runtime.h and include/nccl.h)
    endif
  endif
endif
ifneq ($(filter check-library,$(MAKECMDGOALS)),)
  ifneq ($(MPICC) $(CFLAGS) $(WARNINGS) $(CUDA_HOME) $(NCCL_HOME),$(file <$(cuda_stamp)))
    $(shell mkdir -p $(cuda_build))
    $(file >$(cuda_stamp),$(MPICC) $(CFLAGS) $(WARNINGS) $(CUDA_HOME) $(NCCL_HOME))
  endif
endif
$(cuda_build)/check/%.o: $(TOP)/check/%.c $(check_headers) $(cuda_stamp) | $(cuda_build)/check/front
	$(check_compile) -ftls-model=initial-exec -fvisibility=hidden $(cuda_compile) -c $< -o $@
$(cuda_build)/check/front/mpi_made.o: $(TOP)/build/mpi_made.c $(check_headers) $(cuda_stamp) | $(cuda_build)/check/front
	$(check_compile) -ftls-model=initial-exec -fvisibility=hidden $(cuda_compile) -c $< -o $@
$(cuda_check): $(call made_of,$(cuda_build)/check)
	printf '{ global: %s local: *; };\n' '$(patsubst %,%;,$(check_exported))' >$(cuda_build)/public
	$(MPICC) -shared -Wl,--version-script=$(cuda_build)/public $^ -ldl -pthread -lrt -o $@

.PHONY: check-library cpu-forms cpu-standin
check-library: $(if $(filter cpu,$(BACKEND)),$(cpu_check),$(cuda_check))
cpu-standin: $(cpu_shared)
cpu-forms: $(cpu_library) $(cpu_shared) $(cpu_check)

# Draws what `bandwidth --csv bandwidth.csv` wrote.
CSV ?= bandwidth.csv
SVG ?= $(patsubst %.csv,%,$(CSV)).svg
.PHONY: plot
plot:
	@command -v gnuplot >/dev/null || \
	    { echo 'make plot needs gnuplot (apt-get install gnuplot-nox)' >&2; exit 1; }
	@test -f '$(CSV)' || \
	    { echo 'no $(CSV) here: mpirun -np 4 ./bandwidth --csv $(CSV) writes it' >&2; exit 1; }
	gnuplot -e "csv='$(CSV)'; svg='$(SVG)'" $(TOP)/06-bandwidth/bandwidth.gnuplot

# Draws what NCCL_TIMELINE=FILE wrote, or the part between two times in ms.
FILE ?= run.json
FROM ?=
TO ?=
.PHONY: timeline
timeline:
	@test -f '$(FILE)' || \
	    { echo 'no $(FILE) here: NCCL_TIMELINE=$(FILE) mpirun … writes it' >&2; exit 1; }
	@$(TOP)/check/timeline-svg '$(FILE)' '$(if $(filter file,$(origin SVG)),$(patsubst %.json,%,$(FILE)).svg,$(SVG))' $(FROM) $(TO)

# Breaks a lesson on purpose, or lists the ways to do so: common/break.sh says how they are written.
.PHONY: break
break:
	@BACKEND=$(backend) $(TOP)/common/break.sh $(N)

clean-lesson:
	rm -f $(programs)
ifneq ($(PROGRAM),)
clean: clean-lesson
.PHONY: clean
endif
