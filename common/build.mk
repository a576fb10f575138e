# How a lesson is built, for the top Makefile (all lessons) and for each lesson's own.
# Chosen on the command line or in the environment:
#   BACKEND    auto (default), cpu or cuda     MPICC      MPI's C compiler (mpicc)
#   CUDA_HOME  the CUDA Toolkit                NCCL_HOME  NCCL, where it is not in the former
#   SANITIZE=1 (cpu) AddressSanitizer and UndefinedBehaviorSanitizer
#   V=1        the commands instead of a short line for each file

TOP := $(patsubst %/common/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
ifneq ($(words $(TOP) $(CURDIR)),2)
  $(error make cannot work in a folder whose path has a space, '$(CURDIR)': move the course to another, such as ~/nccl-course)
endif
BACKEND ?= auto
MPICC ?= mpicc
# Lessons are made for debuggers, and in little time; the libraries have to be fast as well, above all
# the one that is loaded before NCCL.
ifeq ($(origin CFLAGS),undefined)
  CFLAGS := -Og -g
  library_cflags := -O1
  loaded_cflags := -O2
else
  library_cflags := $(CFLAGS)
  loaded_cflags :=
endif
WARNINGS ?= -Wall -Wextra
OBJCOPY ?= objcopy
NM ?= nm

# Where CUDA and NCCL are.
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

# Which build. A lesson's folder and common/ are enough for GPUs; the CPU build is made of cpu/, check/
# and kernels/.
has_standin := $(and $(wildcard $(TOP)/cpu/build.mk),$(wildcard $(TOP)/check/build.mk),$(wildcard $(TOP)/kernels/runtime))
ifeq ($(BACKEND),auto)
  ifeq ($(has_standin),)
    backend := cuda
    why := the CPU build is not here: it needs cpu/, check/ and kernels/ of the course beside common/
  else ifeq ($(has_cuda),)
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

# PROGRAM is set by a lesson's Makefile; the top Makefile builds them all, and the program of
# common/cuda.md.
programs := $(if $(PROGRAM),$(CURDIR)/$(PROGRAM),$(basename $(wildcard \
    $(TOP)/[0-9][0-9]-*/*.c $(TOP)/common/cuda.c)))
# Lessons with kernels (.cu) need a compiler for them: cpu-nvcc of the course, which needs clang, or nvcc.
with_kernels := $(basename $(if $(PROGRAM),$(wildcard $(CURDIR)/$(PROGRAM).cu),$(wildcard $(TOP)/[0-9][0-9]-*/*.cu)))
ifneq ($(with_kernels),)
  kernel_compiler := $(if $(filter cuda,$(backend)),$(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) \
      $(shell command -v nvcc 2>/dev/null)),$(if $(shell command -v clang++ $(foreach n,14 15 16 17 18 19 20 21,clang++-$(n)) \
      2>/dev/null),$(wildcard $(TOP)/kernels/cpu-nvcc)))
  programs := $(filter-out $(with_kernels),$(programs)) $(if $(kernel_compiler),$(with_kernels))
  kernel_needs := $(if $(filter cuda,$(backend)),nvcc,clang for kernels (apt-get install clang))
  left_out := $(if $(kernel_compiler),,$(with_kernels))
  ifeq ($(backend)$(left_out)$(wildcard $(NCCL_HOME)/include/nccl_device.h),cuda)
    kernel_needs := nccl_device.h (NCCL 2.28 or newer)
    left_out := $(basename $(shell grep -ls '<nccl_device.h>' $(addsuffix .cu,$(with_kernels))))
    programs := $(filter-out $(left_out),$(programs))
  endif
endif
# As they are typed: 01-nccl-broadcast, with or without a slash, and 01-nccl-broadcast/broadcast.
by_path := $(filter-out /%,$(patsubst $(CURDIR)/%,%,$(programs)))
typed := $(by_path) $(dir $(by_path)) $(patsubst %/,%,$(dir $(by_path)))

# What this run of make is for: the lessons, what else needs the CPU build's library, or the checks for
# GPUs.
goals := $(or $(MAKECMDGOALS),all)
builds_lessons := $(filter all $(programs) $(typed),$(goals))
for_lessons := $(builds_lessons) $(filter exercise exercise-flags grade,$(goals))
for_cpu := $(filter cpu-flags cpu-forms cpu-standin cpu-judge benchmark install-cpu,$(goals))
builds_cpu := $(for_cpu) $(if $(filter cpu,$(backend)),$(for_lessons)) \
    $(if $(filter cpu,$(BACKEND)),$(filter check-library,$(goals)))
builds_cuda_check := $(if $(filter-out cpu,$(BACKEND)),$(filter check-library install-checks,$(goals)))
ifeq ($(backend),cuda)
  builds_cuda_check += $(filter exercise grade,$(goals))
endif

ifneq ($(and $(strip $(for_lessons)),$(filter cpu,$(backend))),)
  ifeq ($(has_standin),)
    $(error BACKEND=cpu, but the CPU build is not here: it needs cpu/, check/ and kernels/ of the course beside common/)
  endif
endif
or_cpu := $(if $(has_standin),or take BACKEND=cpu,or copy cpu/, check/ and kernels/ of the course beside common/ for the CPU build)
ifneq ($(filter cuda-flags,$(goals)),)
  for_cuda := make cuda-flags
  or_cpu := or take make cpu-flags
else ifneq ($(and $(strip $(for_lessons)),$(filter cuda,$(backend))),)
  for_cuda := BACKEND=cuda
endif
ifdef for_cuda
  ifeq ($(has_cuda),)
    $(error $(for_cuda), but no CUDA Toolkit: set CUDA_HOME to the folder with include/cuda_runtime.h, $(or_cpu))
  else ifeq ($(has_nccl),)
    $(error $(for_cuda), but no NCCL: set NCCL_HOME to the folder with include/nccl.h, $(or_cpu))
  endif
endif

# Compiling takes mpicc, and an exercise is also run.
missing := $(strip $(foreach tool,$(if $(strip $(for_lessons) $(builds_cpu) $(builds_cuda_check)),$(firstword $(MPICC))) \
    $(if $(filter exercise exercise-flags grade,$(goals)),mpirun),$(if $(shell command -v $(tool) 2>/dev/null),,$(tool))))
ifneq ($(missing),)
  $(error no $(missing) here. Install Open MPI (on Debian and Ubuntu `make demo` does: libopenmpi-dev, openmpi-bin); on a cluster, `module load` an MPI; MPICC=… names the compiler of one that is elsewhere)
endif

# All processors, if no -j says otherwise. What the compiler says of one file stays in one piece; only
# what shows something while it runs is not kept back for that.
jobs := $(shell nproc 2>/dev/null || echo 2)
parallel := all $(programs) $(typed) cpu-flags cpu-forms cpu-standin cpu-judge install-cpu cuda-flags check-library
ifeq ($(MAKELEVEL)$(filter-out $(parallel) exercise exercise-flags grade,$(goals)),0)
  MAKEFLAGS += -j$(jobs)
  ifeq ($(filter-out $(parallel),$(goals))$(if $(filter output-sync,$(.FEATURES)),,no),)
    MAKEFLAGS += --output-sync=target
  endif
endif

# $(call say,CC): the short line, unless -s or V=1 is given, or the goal prints something else. The command
# follows it, with $(Q) in front.
Q := $(if $(V),,@)
silent := $(or $(V),$(findstring s,$(firstword -$(MAKEFLAGS))),$(filter cpu-flags cuda-flags exercise exercise-flags,$(goals)))
say = $(if $(silent),,@echo '$(1) $(patsubst $(TOP)/%,%,$(or $(2),$<))')

# $(call remember,FILE,TEXT): the file is written when the text has changed, so that nothing
# outlives what it was built with. $(call folders,FILES) makes their folders.
same = $(and $(findstring x$(1)x,x$(2)x),$(findstring x$(2)x,x$(1)x))
folders = $(if $(filter-out $(wildcard $(sort $(dir $(1)))),$(sort $(dir $(1)))),$(shell mkdir -p $(sort $(dir $(1)))))
write = $(if $(call same,$(2),$(strip $(file <$(1)))),,$(file >$(1),$(2)))
remember = $(folders)$(call write,$(1),$(strip $(subst $(TOP)/,,$(2))))

# $(call depends,NAME): the compiler writes down which headers it has read. $(call movable,NAME)
# then makes NAME.d of it, which is true for a copy of this folder, too, and wherever make runs (ccache
# may have made the paths relative).
depends = -MMD -MP -MF $(1).read -MT $@
movable = sed -e 's@\(^\| \)\([^/ \]\)@\1$(CURDIR)/\2@g' -e 's@$(TOP)/@$$(TOP)/@g' $(1).read >$(1).d

cpu_build := $(TOP)/build/cpu$(if $(SANITIZE),-sanitize)
cpu_library := $(cpu_build)/libnccl-cpu.a
# A folder as CUDA's toolkit is, for CMake: FOLDER, HEADERS, LIBRARY, COMPILER.
toolkit = mkdir -p '$1/bin' '$1/lib' && ln -sfn '$2' '$1/include' && ln -sfn '$4' '$1/bin/nvcc' && ln -sfn lib '$1/lib64' && \
    for name in cudart cudart_static cuda cublas cublasLt nccl; do ln -sfn '$3' "$1/lib/lib$$name.a"; done
, := ,
sanitizers := $(if $(SANITIZE),-fsanitize=address$(,)undefined -fno-omit-frame-pointer)
# A report names the lines of calls: sibling calls are off, since a call in tail position
# would hide who made it, and addr2line knows the files of older debug information better.
cpu_any := -gdwarf-4 -fno-optimize-sibling-calls -I$(TOP)/cpu/include -I$(TOP)/cpu/include/absent $(sanitizers)
# It also says when a variable is gone that a queued function is to have: gcc is kept from making a
# function and the only one that calls it one, which would give both the same variables.
cpu_compile := $(cpu_any)$(if $(strip $(builds_cpu)), $(shell \
    flag=-fno-inline-functions-called-once; $(MPICC) $$flag -Werror -E -x c /dev/null >/dev/null 2>&1 && echo $$flag))
cpu_link := $(cpu_library) $(sanitizers) -lm -ldl -lrt -pthread

library_dir = $(firstword $(wildcard $(addprefix $(1)/,lib64 lib lib/x86_64-linux-gnu)))
cuda_lib := $(call library_dir,$(CUDA_HOME))
nccl_lib := $(call library_dir,$(NCCL_HOME))
# NCCL's folders come first, since a CUDA Toolkit can have an NCCL of its own. The compiler's own folder,
# given again, would hide C++'s headers.
cuda_compile := $(addprefix -isystem ,$(filter-out /usr/include, \
    $(addsuffix /include,$(NCCL_HOME) $(filter-out $(NCCL_HOME),$(CUDA_HOME)))))
cuda_link := $(foreach lib,$(nccl_lib) $(filter-out $(nccl_lib),$(cuda_lib)),-L$(lib) -Wl$(,)-rpath$(,)$(lib)) \
    -lnccl -lcudart -lm

.DEFAULT_GOAL := all
.PHONY: all announce clean-lesson $(typed)
all: $(programs) $(if $(left_out),announce)
$(foreach path,$(by_path),$(eval $(path) $(dir $(path)) $(patsubst %/,%,$(dir $(path))): $(CURDIR)/$(path)))

announce:
	@echo 'BACKEND=$(backend) ($(why))'
	@$(if $(left_out),echo 'left out because there is no $(kernel_needs): $(notdir $(patsubst %/,%,$(dir $(left_out))))')

lesson_compile := -std=c11 $(CFLAGS) $(WARNINGS) -I$(TOP)/common
lesson_library := $(if $(filter cpu,$(backend)),$(cpu_library))
lesson_config := $(TOP)/build/config
# What was read lies in build; that of a program outside the course beside it.
notes_of = $(patsubst $(TOP)/%,$(TOP)/build/lessons/%,$(1))
lesson_notes = $(call notes_of,$@)
ifneq ($(strip $(builds_lessons)),)
  $(call remember,$(lesson_config),$(backend) $(MPICC) $(lesson_compile) $($(backend)_compile) $($(backend)_link))
  $(call folders,$(call notes_of,$(programs)))
  -include $(addsuffix .d,$(call notes_of,$(programs)))
endif

$(filter-out $(with_kernels),$(programs)): %: %.c $(lesson_config) $(lesson_library) | announce
	$(call say,CC)
	$(Q)$(MPICC) $(call depends,$(lesson_notes)) $(lesson_compile) $($(backend)_compile) $< \
	    $($(backend)_link) $(if $(filter cuda,$(backend)),$(shell grep -qs cublas $< $(<D)/*.h && echo -lcublas)) -o $@
	@$(call movable,$(lesson_notes))

# MPI's flags for nvcc: what MPI's compiler adds.
mpi_flags = $(filter -I% -L% -l%,$(shell $(MPICC) -show))
kernel_compile = $(if $(filter cuda,$(backend)),-cudart shared $(cuda_compile) $(mpi_flags) \
    $(foreach lib,$(nccl_lib) $(cuda_lib),-L$(lib) -Xlinker -rpath -Xlinker $(lib)),-O2) -g -lineinfo -I$(TOP)/common
$(filter $(with_kernels),$(programs)): %: %.cu $(lesson_config) $(lesson_library) $(wildcard $(TOP)/common/*.h) \
    $(wildcard $(TOP)/kernels/*.pl $(TOP)/kernels/cpu-nvcc $(addprefix $(TOP)/kernels/include/,*.* */*.* */*/*.* cuda/atomic)) | announce
	$(call say,NVCC)
	$(Q)MPICC='$(MPICC)' $(kernel_compiler) $(kernel_compile) $< -o $@ -lnccl

ifneq ($(has_standin),)
  include $(TOP)/cpu/build.mk
  include $(TOP)/check/build.mk
endif

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
	@$(TOP)/check/front/timeline/timeline-svg '$(FILE)' \
	    '$(if $(filter file,$(origin SVG)),$(patsubst %.json,%,$(FILE)).svg,$(SVG))' $(FROM) $(TO)

# Breaks a lesson on purpose, or lists the ways to do so: common/break.sh says how they are written.
# Where the CPU build is there, its flags are known without another make.
.PHONY: break
break:
	@BACKEND=$(backend) FLAGS='$(and $(lesson_library),$(wildcard $(lesson_library)),$(cpu_compile) $(cpu_link))' \
	    $(TOP)/common/break.sh $(N)

clean-lesson:
	rm -f $(programs)
ifneq ($(PROGRAM),)
clean: clean-lesson
# These are the course's, and readers type them in a lesson's folder.
.PHONY: clean exercise exercises solution grade
exercise exercises solution grade:
	@EXERCISE_FROM=$(CURDIR) $(MAKE) --no-print-directory -C $(TOP) $@ \
	    $(foreach folder,DIR TESTS OUT,$(if $($(folder)),$(folder)='$(abspath $($(folder)))'))
endif
