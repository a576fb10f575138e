# One front door. `make help` lists the targets.
include common/build.mk

# More ranks than cores must share them politely; containers often run as root.
export OMPI_MCA_mpi_yield_when_idle = 1
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
endif

.PHONY: help demo test clean cpu-flags install install-test
help:
	@echo 'make             build all lessons; BACKEND=auto|cpu|cuda chooses the build (now: $(backend))'
	@echo 'make demo        install what is missing (INSTALL=no only lists it), build, run all lessons'
	@echo 'make test        the tests, complete by itself; with GPUs: make test BACKEND=cuda'
	@echo 'make clean       remove all that was built'
	@echo 'make cpu-flags   what to give mpicc to build a program of your own for the CPU build'
cpu-flags: $(cpu_library)
	@echo '$(cpu_compile) $(cpu_link)'
clean: clean-lesson
	rm -rf $(TOP)/build
