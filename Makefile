# One front door. `make help` lists the targets.
include common/build.mk
-include exercises/exercises.mk
-include book/book.mk

# Open MPI's settings for one machine; on GPUs it looks for the machine's own paths.
include $(TOP)/common/one-machine.sh
ifeq ($(backend),cuda)
unexport OMPI_MCA_pml HWLOC_COMPONENTS HWLOC_PLUGINS_PATH PMIX_MCA_gds
endif

# Read by the recipes and the tests that they start.
export BACKEND CUDA_HOME NCCL_HOME MPICC INSTALL

PROVE := prove --timer --failures --comments
# Open MPI loads forty plugins into each rank: of these kinds, only what one machine needs. So a program starts in
# less than half the time; without mpirun, it starts no server of its own.
PROVE_CPU := BACKEND=cpu OMPI_MCA_btl=self,vader OMPI_MCA_coll=basic,libnbc,self,tuned OMPI_MCA_osc=rdma,sm \
    OMPI_MCA_shmem=mmap OMPI_MCA_pmix=^flux OMPI_MCA_reachable=weighted OMPI_MCA_mpool=^hugepage \
    OMPI_MCA_ess_singleton_isolated=1 $(PROVE)
# A thousand small programs are linked: gold, where it is, takes half the time for each. The shell
# asks, since both may have been installed a moment before.
PROVE_CPU := OMPI_LDFLAGS="$$(mpicc --showme:libdirs 2>/dev/null | sed 's/[^ ]*/-L&/g') \
    $$(! command -v ld.gold >/dev/null || echo -fuse-ld=gold)" $(PROVE_CPU)
TESTS := $(sort $(wildcard tests/*.t tests/*/*.t tests/*/*.bats))
# The first needs the network; the others are of test-long.
APART := tests/build/versions.t tests/cpu/cpu-sanitized.t tests/build/debian.t
# First, so that nothing is left over for one processor at the end. Many tests wait, jobs.t and those of PyTorch most of
# the time: so six run at once, also on two processors.
LONGEST := $(addprefix tests/, jobs/jobs.t book/book.t pytorch/lines.t check/check.t pages/readme.t exercises/exercises.t check/one-line-less.t \
    style.t cpu/cpu.t pytorch/twins.t lessons/production.bats build/other.t clock/clock.t judge/judge.t check/nccl-check.bats build/build.bats)
ON_GPUS := $(wildcard tests/lessons/*.bats)

.PHONY: help demo install version test test-check test-jobs test-long test-versions benchmark profile measure clean cpu-flags cuda-flags
.PHONY: install-cpu install-checks mpi-folder

help:
	@echo 'make                build all lessons; BACKEND=auto|cpu|cuda chooses (now: $(backend), $(why))'
	@echo 'make demo           install what is missing (INSTALL=no only lists it), build, run all lessons'
	@echo 'make exercise       the first exercise that is not solved; N=01.2 HINT=1 WATCH=1 RESET=1; N=01 lists what there is'
	@echo 'make exercises      all of them, and how far you are; make solution N=01.2'
	@echo 'make grade          for instructors: make grade DIR=folder, see exercises/grading.md'
	@echo 'make variants       for instructors: other numbers this year, make variants SEED=2027 OUT=folder'
	@echo 'make test           all tests, complete by itself; on the GPUs: make test BACKEND=cuda'
	@echo 'make test-check     only: wrong programs are named, correct ones are not accused'
	@echo 'make test-jobs      only: the Slurm jobs, on a Slurm of its own (root)'
	@echo 'make test-long      what make test leaves out, or takes a selection of: half an hour'
	@echo 'make test-versions  only: CUDA 12.2 to 13, NCCL 2.18 to the newest, Open MPI 5 (downloads them)'
	@echo 'make benchmark      what the CPU build costs, beside plain MPI'
	@echo 'make plot           draw what 06-bandwidth/bandwidth --csv FILE wrote: make plot CSV=FILE'
	@echo 'make book           the pages as a site, into build/book; SERVE=yes serves it, PDF=yes prints it'
	@echo 'make slides         a deck for each part, and for each half day of a course of two days, into build/slides'
	@echo 'make timeline       draw what NCCL_TIMELINE=FILE wrote: make timeline FILE=run.json'
	@echo 'make break          break a lesson on purpose: make break N=04a; N=04, or no N, lists what there is'
	@echo 'make profile        nsys on GPUs: make profile LESSON=02-nccl-allreduce RANKS=2'
	@echo 'make measure        on a machine with GPUs, into build/measured; PARTS="lessons training": only these'
	@echo 'make cpu-flags      what to give mpicc to build a program of your own for the CPU build'
	@echo 'make cuda-flags     the same for GPUs'
	@echo 'make check-library  what check/nccl-check loads before a program on GPUs'
	@echo 'make install        nccl-check and the CPU build, for programs of your own: make install PREFIX=/usr/local'
	@echo 'make version        the version of the course'
	@echo 'make clean          remove all that was built'

demo:
	@common/install.sh gcc make libopenmpi-dev openmpi-bin perl patch
	@$(MAKE) --no-print-directory -j$(jobs) $(if $(filter output-sync,$(.FEATURES)),-Otarget) all
	@BACKEND=$(backend) common/demo.sh

# The tests use bats and Perl's prove; what else they need stands here too.
GPU_TEST_PACKAGES := gcc make perl libopenmpi-dev openmpi-bin bats procps
# Most run with Open MPI and gcc, a few also with MPICH and with clang; test-versions with Open MPI 5.
# Ubuntu's chromium is a snap, and a container has none: there the book is made, and not looked at.
TEST_PACKAGES = $(filter-out $(if $(shell grep -s '^ID=ubuntu' /etc/os-release),chromium),$(shell cat .devcontainer/packages))
# The tests' builds take no warning, and style.t need not build once more to say so.
test: export WARNINGS := -Wall -Wextra -Werror
test:
ifeq ($(BACKEND),cuda)
	@common/install.sh $(GPU_TEST_PACKAGES)
	@$(MAKE) -s -j$(jobs) all
	$(PROVE) -j$(words $(ON_GPUS)) $(ON_GPUS)
else
	@common/install.sh $(TEST_PACKAGES)
	@$(MAKE) -s -j$(jobs) BACKEND=cpu all cpu-forms
	@$(MAKE) -s -j$(jobs) BACKEND=cpu SANITIZE=1 cpu-judge
	$(PROVE_CPU) -j6 $(LONGEST) $(filter-out $(APART) $(LONGEST),$(TESTS))
endif

test-check:
	@common/install.sh $(TEST_PACKAGES)
	$(PROVE_CPU) tests/check/one-line-less.t tests/check/reports.t
	ALL=yes $(PROVE_CPU) tests/check/check.t

test-jobs:
	@common/install.sh $(TEST_PACKAGES)
	$(PROVE_CPU) tests/jobs/jobs.t

# Open MPI removes its folder in /tmp when it is empty, and what starts at that moment fails: so something is kept there.
test test-check test-jobs test-long: mpi-folder
mpi-folder:
	@mkdir -p "$${TMPDIR:-/tmp}/ompi.$$(uname -n | sed 's/\..*//').$$(id -u)/kept"

# What make test takes a selection of: every line left out, every program with the checks as a library and on every
# number of ranks, the lessons' options on every number of ranks, what the tests break in lessons, what the clock
# predicts of them, each lesson as a job and all of them in one, every answer to an exercise, every solution on all
# numbers of ranks, every repaired twin, every picture of the pages, the judge's cases on all numbers of ranks under
# sanitizers, all pages and questions of the book, its PDF, and more random programs. And what it leaves out: the
# stand-in's unit tests under sanitizers, what cppcheck and clang say, a rehearsal of make measure, and the first
# hour in a fresh Debian.
test-long:
	@common/install.sh $(TEST_PACKAGES) debootstrap
	ALL=yes $(PROVE_CPU) $(addprefix tests/, check/one-line-less.t check/preload.t build/other.t exercises/exercises.t exercises/variants.t \
	    jobs/measure.bats cpu/hosts.bats build/build.bats check/nccl-check.bats) $(ON_GPUS)
	RANKS='2 3 4 8' $(PROVE_CPU) tests/check/check.t
	$(PROVE_CPU) tests/exercises/exercises.t :: --all
	ALL=yes $(PROVE_CPU) $(addprefix tests/, cpu/cpu.t cpu/cpu-sanitized.t judge/judge.t style.t clock/clock.t \
	    jobs/jobs.t pages/readme.t book/book.t book/served-and-printed.t)
	$(PROVE) tests/build/debian.t

test-versions:
	@common/install.sh $(TEST_PACKAGES) python3-pip
	$(PROVE) tests/build/versions.t

benchmark: $(cpu_library)
	@$(MPICC) $(CFLAGS) $(WARNINGS) results/measure/cpu-cost.c $(cpu_compile) $(cpu_link) -o build/benchmark
	@mpirun --oversubscribe -np 4 build/benchmark

# A lesson under nsys, which shows the calls by the names of a timeline.
RANKS ?= 2
PROFILE ?= $(TOP)/build/profile/$(LESSON)
profile:
	@command -v nsys >/dev/null || \
	    { echo 'make profile needs nsys, NVIDIA Nsight Systems (package nsight-systems-cli)' >&2; exit 1; }
	@test -d '$(LESSON)' || \
	    { echo 'no lesson $(LESSON): make profile LESSON=02-nccl-allreduce' >&2; exit 1; }
	@test '$(has_gpu)' || { echo 'make profile needs a GPU, and none is visible here' >&2; exit 1; }
	@$(MAKE) -s BACKEND=cuda all check-library
	@mkdir -p $(dir $(PROFILE))
	nsys profile --trace=cuda,nvtx,osrt --force-overwrite=true --output='$(PROFILE)' \
	    mpirun --oversubscribe -np $(RANKS) check/nccl-check $(basename $(firstword $(wildcard $(LESSON)/*.c)))
	@nsys stats --quiet --report nvtx_sum '$(PROFILE).nsys-rep'

measure:
	@results/measure/measure.sh

cpu-flags: $(cpu_library)
	@echo '$(cpu_compile) $(cpu_link)'

cuda-flags:
	@echo '$(cuda_compile) $(cuda_link)'

VERSION := $(shell sed -n 's/^version=//p' check/nccl-check)
version:
	@echo $(VERSION)

# Under PREFIX, or under DESTDIR/PREFIX to be packed. The checks for GPUs come along where the headers of
# CUDA and NCCL are.
PREFIX ?= /usr/local
to := $(DESTDIR)$(PREFIX)
install:
	@$(MAKE) --no-print-directory -j$(jobs) install-cpu
	@$(if $(and $(has_cuda),$(has_nccl)),$(MAKE) --no-print-directory -j$(jobs) BACKEND=cuda install-checks)
	@mkdir -p '$(to)/bin' '$(to)/share/man/man1' '$(to)/share/man/man7' '$(to)/share/bash-completion/completions'
	@install -m 755 check/nccl-check kernels/cpu-nvcc '$(to)/bin'
	@install -m 644 check/nccl-check.1 kernels/cpu-nvcc.1 '$(to)/share/man/man1'
	@install -m 644 cpu/nccl-cpu.7 '$(to)/share/man/man7'
	@echo 'complete -F _command nccl-check' >'$(to)/share/bash-completion/completions/nccl-check'
	@echo 'Installed in $(to): bin/nccl-check, bin/cpu-nvcc, lib/libnccl-cpu.a (pkg-config nccl-cpu), and their man pages.'
	@$(if $(and $(has_cuda),$(has_nccl)),,echo 'No headers of CUDA and NCCL here (CUDA_HOME, NCCL_HOME): on GPUs nccl-check does not work.')

install-cpu: $(cpu_library)
	@mkdir -p '$(to)/lib/pkgconfig' '$(to)/include/nccl-cpu' '$(to)/share/nccl-cpu/machines'
	@echo 'const char cpu_installed_machines[] = "$(PREFIX)/share/nccl-cpu/machines";' | \
	    $(MPICC) -c -x c - -o $(cpu_build)/prefix.o
	@$(LD) -r $(cpu_build)/whole.o $(cpu_build)/prefix.o -o $(cpu_build)/installed.o
	@rm -f '$(to)/lib/libnccl-cpu.a' && $(AR) rcs '$(to)/lib/libnccl-cpu.a' $(cpu_build)/installed.o
	@cp -R cpu/include/. '$(to)/include/nccl-cpu'
	@cp -R kernels/include '$(to)/share/nccl-cpu'
	@install -m 644 kernels/device.pl '$(to)/share/nccl-cpu'
	@$(call toolkit,$(to)/share/nccl-cpu/toolkit,../../../include/nccl-cpu,../../../../lib/libnccl-cpu.a,../../../../bin/cpu-nvcc)
	@install -m 644 cpu/machines/*.conf cpu/machines/*.csv '$(to)/share/nccl-cpu/machines'
	@printf '%s\n' 'prefix=$${pcfiledir}/../..' 'Name: nccl-cpu' 'Version: $(VERSION)' \
	    'Description: NCCL, the CUDA runtime and cuBLAS calls on host memory, carried by MPI, with checks' \
	    'Cflags: $(subst -I$(TOP)/cpu/include,-I$${prefix}/include/nccl-cpu,$(cpu_compile))' \
	    'Libs: $(subst $(cpu_build),$${prefix}/lib,$(cpu_link))' >'$(to)/lib/pkgconfig/nccl-cpu.pc'

install-checks: $(cuda_check)
	@mkdir -p '$(to)/lib'
	@install -m 755 $< '$(to)/lib'

clean: clean-lesson
	rm -rf $(TOP)/build
