# The checks: the judge (check/judge and check itself), and what tells it (check/front).
# Every source in these folders is built, and every list of functions (NAME.list) that has a program
# beside it which makes wrappers of it: NAME.awk, or wrappers.awk for all. Three forms come of them:
#   build/cpu/libnccl-cpu.a      the checks and the stand-in in one, what programs are linked with
#   build/cpu/libnccl-check.so   the checks alone, loaded before the stand-in (cpu-forms)
#   build/cuda/libnccl-check.so  the checks alone, loaded before the real NCCL (check-library)

cpu_check := $(cpu_build)/libnccl-check.so
cuda_build := $(TOP)/build/cuda
cuda_check := $(cuda_build)/libnccl-check.so

generator = $(firstword $(wildcard $(1:.list=.awk) $(dir $(1))wrappers.awk))
lists := $(foreach list,$(sort $(shell find $(TOP)/check/front -name '*.list')),$(if $(call generator,$(list)),$(list)))
made := $(patsubst $(TOP)/%.list,$(TOP)/build/made/%_made.c,$(lists))
judge_sources := $(sort $(wildcard $(TOP)/check/*.c) $(shell find $(TOP)/check/judge -name '*.c' 2>/dev/null))
front_sources := $(sort $(shell find $(TOP)/check/front -name '*.c' 2>/dev/null))
# $(call judge_in,FOLDER), $(call front_in,FOLDER): the objects, for a form that lies there.
judge_in = $(judge_sources:$(TOP)/%.c=$(1)/%.o)
front_in = $(front_sources:$(TOP)/%.c=$(1)/%.o) $(made:$(TOP)/build/made/%.c=$(1)/%.o)

check_compile := $(MPICC) -std=gnu11 -fPIC -fno-semantic-interposition $(library_cflags) $(WARNINGS) \
    -I$(TOP)/cpu $(addprefix -I,$(shell find $(TOP)/check -type d))
# In a library the variables of a thread are found as fast as in a program (initial-exec), since it
# is there from the start.
cpu_check_compile := $(check_compile) -ftls-model=initial-exec -DOVER_STANDIN=1 $(library_compile)
cuda_check_compile := $(check_compile) -ftls-model=initial-exec $(loaded_cflags) -DOVER_STANDIN=0 -fvisibility=hidden $(cuda_compile)
cpu_check_config := $(cpu_build)/check/config
cuda_check_config := $(cuda_build)/check/config
check_objects :=
ifneq ($(strip $(builds_cpu)),)
  $(call remember,$(cpu_check_config),$(cpu_check_compile))
  $(call remember,$(cpu_build)/check/objects,$(call judge_in,.) $(call front_in,.))
  check_objects += $(call judge_in,$(cpu_build)) $(call front_in,$(cpu_build)) $(call front_in,$(cpu_build)/shared)
endif
ifneq ($(strip $(builds_cuda_check)),)
  ifeq ($(and $(has_cuda),$(has_nccl)),)
    $(error check-library needs the headers of CUDA and NCCL: set CUDA_HOME and NCCL_HOME to the folders with include/cuda_runtime.h and include/nccl.h)
  endif
  $(call remember,$(cuda_check_config),$(cuda_check_compile))
  $(call remember,$(cuda_build)/check/objects,$(call judge_in,.) $(call front_in,.))
  check_objects += $(call judge_in,$(cuda_build)) $(call front_in,$(cuda_build))
endif
ifneq ($(strip $(check_objects)),)
  $(call folders,$(check_objects) $(made))
  -include $(check_objects:=.d)
endif

# A list says which header it is of: what that declares must stand in it.
header_of = $(shell sed -n 's/^\# header //p' $(1))
.SECONDEXPANSION:
$(made): $(TOP)/build/made/%_made.c: $(TOP)/%.list $$(call generator,$(TOP)/%.list) $(wildcard $(TOP)/cpu/include/*.h)
	$(Q)$(if $(call header_of,$<),awk -f $(TOP)/check/front/api/listed.awk $< $(TOP)/cpu/include/$(call header_of,$<))
	$(Q)LC_ALL=C awk -f $(call generator,$<) $< >$@.new && mv $@.new $@

# The front over the stand-in, in one library with it; alone, before it; and before the real NCCL.
# The judge does not ask what it is linked with.
$(cpu_build)/check/front/%.o: private form := -DFRONT_LINKED
# $(call compiled,FOLDER OF OBJECTS,FOLDER OF SOURCES,cpu or cuda)
define compiled
$(1)/%.o: $(2)/%.c $$($(3)_check_config)
	$$(call say,CC)
	$$(Q)$$($(3)_check_compile) $$(form) $$(call depends,$$@) -c $$< -o $$@
	@$$(call movable,$$@)
endef
$(foreach sources,$(TOP) $(TOP)/build/made, \
    $(eval $(call compiled,$(cpu_build)/check,$(sources)/check,cpu)) \
    $(eval $(call compiled,$(cpu_build)/shared/check,$(sources)/check,cpu)) \
    $(eval $(call compiled,$(cuda_build)/check,$(sources)/check,cuda)))

# What is built is said first; cpu-flags prints nothing but the flags.
ifneq ($(strip $(builds_lessons)),)
$(cpu_objects) $(check_objects) $(made): | announce
endif

$(cpu_build)/judge.o: $(call judge_in,$(cpu_build)) $(cpu_build)/check/objects
	$(Q)$(LD) -r $(filter %.o,$^) -o $@
$(cpu_build)/front.o: $(cpu_build)/judge.o $(call front_in,$(cpu_build)) $(cpu_build)/check/objects
	$(Q)$(LD) -r $(filter %.o,$^) -o $@

# The names that the front has of its own. Those it shares with the stand-in are standin_X there. NCCL's
# are seen twice: a program may have an ncclX of its own that calls pncclX, which is the front's, too.
check_public := cu[A-Z]* cuda[A-Z]* cublas[A-Z]* nccl[A-Z]* MPI_* MPIX_*
check_exported := $(check_public) __cuda* cuCtx* cuStream* cuEvent* cuMem* cuGraph* __libc_start_main pthread_join _exit
# Ranks can meet by these: only what the program itself uses of them is imported (cpu/src/base/system.c).
check_meetings := access fcntl mmap shm_open socket

$(cpu_build)/names: $(cpu_build)/front.o $(cpu_build)/standin.o
	$(Q)$(NM) -g --defined-only $^ | awk '/^$$/ { next } /:$$/ { file++; next } \
	    file == 1 { wrapped[$$3]; next } !($$3 in wrapped) { next } \
	    { print $$3, "standin_" $$3 }' >$@
$(cpu_build)/whole.o: $(cpu_build)/front.o $(cpu_build)/standin.o $(cpu_build)/names
	$(Q)$(OBJCOPY) --redefine-syms=$(cpu_build)/names $(cpu_build)/standin.o $(cpu_build)/below.o
	$(Q)$(LD) -r $(foreach one,$(check_meetings),--wrap=$(one) --defsym __wrap_$(one)=standin_$(one)) \
	    $$($(NM) -g --defined-only $(cpu_build)/front.o $(cpu_build)/below.o | \
	    awk '$$3 ~ /^nccl/ { print "--defsym=p" $$3 "=" $$3 }') $(cpu_build)/front.o $(cpu_build)/below.o -o $@
	$(Q)$(OBJCOPY) --wildcard $(patsubst %,-G '%',$(check_public) pnccl[A-Z]* __cuda* __kernel_* standin_reach_* mlockall sched_yield pthread_join $(if $(SANITIZE),__lsan* dlclose *asprintf*)) $@
	$(Q)$(OBJCOPY) --wildcard --weaken-symbol='MPI_*' --weaken-symbol='nccl[A-Z]*' --weaken-symbol=sched_yield $@ # a program may have its own, as MPI and NCCL let it
$(cpu_library): $(cpu_build)/whole.o $(TOP)/common/build.mk
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $<
	$(Q)$(call toolkit,$(@D)/toolkit,$(TOP)/cpu/include,../../$(@F),$(TOP)/kernels/cpu-nvcc)

# A library to be loaded first exports what it stands before, and nothing else.
define loaded_first
$(call say,LD,$@)
$(Q)printf '{ global: %s local: *; };\n' '$(patsubst %,%;,$(check_exported))' >$@.public
$(Q)$(MPICC) -shared -Wl,--version-script=$@.public $(filter %.o,$^) -ldl -pthread -lrt -o $@
endef
$(cpu_check): $(call judge_in,$(cpu_build)) $(call front_in,$(cpu_build)/shared) $(cpu_build)/check/objects
	$(loaded_first)
# It needs no GPU, and nothing of CUDA or NCCL is linked: what is below is found when the program runs.
$(cuda_check): $(call judge_in,$(cuda_build)) $(call front_in,$(cuda_build)) $(cuda_build)/check/objects
	$(loaded_first)

.PHONY: check-library cpu-forms cpu-judge
cpu-judge: $(cpu_build)/judge.o
check-library: $(if $(filter cpu,$(BACKEND)),$(cpu_check),$(cuda_check))
cpu-forms: $(cpu_library) $(cpu_shared) $(cpu_check)
