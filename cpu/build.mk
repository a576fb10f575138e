# The CPU build's stand-in for CUDA, cuBLAS and NCCL: every source in cpu/src. Objects lie under
# build/cpu by the path of their source. (check/build.mk puts the checks in front of it.)

cpu_shared := $(cpu_build)/libnccl-cpu.so
cpu_sources := $(sort $(shell find $(TOP)/cpu/src $(TOP)/kernels/runtime -name '*.c'))
cpu_objects := $(patsubst $(TOP)/%.c,$(cpu_build)/%.o,$(cpu_sources))
cpu_config := $(cpu_build)/config
# The lines of the library itself nobody asks for: without them programs link, and reports come, in less
# time. SANITIZE=1 has them, and make LIBRARY_DEBUG=-g the variables, too.
LIBRARY_DEBUG ?= $(if $(SANITIZE),-g1,-g0)
library_compile := $(cpu_any) $(LIBRARY_DEBUG)
cpu_own := $(MPICC) -I$(TOP)/cpu -I$(TOP)/cpu/src -std=gnu11 -fwrapv -fPIC -fvisibility=hidden $(library_cflags)

ifneq ($(strip $(builds_cpu)),)
  $(call remember,$(cpu_config),$(cpu_own) $(WARNINGS) $(library_compile))
  $(call folders,$(cpu_objects))
  $(call remember,$(cpu_build)/cpu/objects,$(cpu_objects))
  -include $(cpu_objects:=.d)
endif

# Where the sums are made: less than -O3 would make them one by one. Products are rounded before they
# are added, on every processor: else ranks on different machines would differ in the last bit.
$(cpu_build)/cpu/src/data/number.o $(cpu_build)/cpu/src/blas/arithmetic.o: private own := -O3 -ffp-contract=off
# Where the modelled clock finds its machines; and no multiply-add in one step: the same digits
# everywhere.
machines := -DCPU_MACHINES='"$(TOP)/cpu/machines"'
$(filter $(cpu_build)/cpu/src/clock/%.o,$(cpu_objects)): private own := -ffp-contract=off
$(cpu_build)/cpu/src/clock/machines.o: private own := $(machines)
# The mpirun that belongs to this mpicc (mpicc.mpich: mpirun.mpich).
mpirun := $(if $(findstring /,$(MPICC)),$(dir $(MPICC)))$(if $(findstring mpicc,$(notdir $(MPICC))),$(subst mpicc,mpirun,$(notdir $(MPICC))),mpirun)
$(cpu_build)/cpu/src/start/launch.o: private own := -DMPIRUN='"$(mpirun)"'
$(cpu_build)/cpu/src/%.o: $(TOP)/cpu/src/%.c $(cpu_config)
	$(call say,CC)
	$(Q)$(cpu_own) $(own) $(WARNINGS) $(library_compile) $(call depends,$@) -c $< -o $@
	@$(call movable,$@)

# What kernels that cpu-nvcc has compiled need. launch.c has calls that other programs are refused.
$(cpu_build)/kernels/runtime/launch.o: private own := -D__CUDACC__
$(cpu_build)/kernels/runtime/%.o: $(TOP)/kernels/runtime/%.c $(cpu_config)
	$(call say,CC)
	$(Q)$(cpu_own) $(own) $(WARNINGS) $(library_compile) $(call depends,$@) -c $< -o $@
	@$(call movable,$@)

# The stand-in as one object, in which the names of CUDA, cuBLAS, NCCL and MPI are seen, and
# no others.
$(cpu_build)/standin.o: $(cpu_objects) $(cpu_build)/cpu/objects
	$(Q)$(LD) -r $(cpu_objects) -o $@
	$(Q)$(OBJCOPY) --localize-hidden $@

# The stand-in without checks.
$(cpu_shared): $(cpu_build)/standin.o
	$(call say,LD,$@)
	$(Q)$(MPICC) -shared -Wl,-Bsymbolic $< $$($(NM) -g --defined-only $< | \
	    awk '$$3 ~ /^nccl/ { print "-Wl,--defsym=p" $$3 "=" $$3 }') \
	    $(sanitizers) -lm -ldl -pthread -o $@

.PHONY: cpu-standin
cpu-standin: $(cpu_shared)
