# Exercises: make exercise, make exercises, make solution (README.md beside this file says how they
# are written), and make grade for instructors (grading.md).

# How an exercise is compiled and linked; `make exercise-flags` tells it to the tests.
exercise_compile = -std=c11 -O1 -g -Wall -Wextra -Wno-unused-parameter -I$(TOP)/common $($(backend)_compile)
exercise_link = -g $($(backend)_link) $(if $(filter cuda,$(backend)),-lcublas)
exercise_settings = EXERCISE_BACKEND=$(backend) MPICC='$(MPICC)' EXERCISE_COMPILE='$(exercise_compile)' \
    EXERCISE_LINK='$(exercise_link)'
exercise_needs := $(lesson_library) $(if $(filter cuda,$(backend)),check-library)

ifneq ($(filter exercise,$(goals)),)
  ifeq ($(HINT)$(RESET)$(wildcard $(exercise_needs)),)
    $(info Building the $(if $(filter cpu,$(backend)),CPU build,checks), once: less than a minute …)
  endif
endif

.PHONY: exercise exercises solution starters grade variants exercise-flags exercise-perl
exercise exercises solution starters grade: export N := $(N)
exercise: export HINT := $(HINT)
exercise: export WATCH := $(WATCH)
exercise: export RESET := $(RESET)
grade: export DIR := $(DIR)
grade: export TESTS := $(TESTS)
grade: export OUT := $(OUT)
grade: export JOBS := $(JOBS)
grade: export TIME := $(TIME)
grade: export MEMORY := $(MEMORY)
grade: export GRADESCOPE := $(GRADESCOPE)

# An exercise that is not solved is no error of make's, unless STRICT=1 asks for that.
exercise: exercise-perl $(if $(HINT)$(RESET),,$(exercise_needs))
	@$(exercise_settings) $(TOP)/exercises/exercise run || $(if $(STRICT),exit 1,true)

exercises: exercise-perl
	@EXERCISE_BACKEND=$(backend) $(TOP)/exercises/exercise list

solution: exercise-perl
	@$(TOP)/exercises/exercise solution

starters: exercise-perl
	@$(TOP)/exercises/exercise starters

grade: exercise-perl $(exercise_needs)
	@$(exercise_settings) $(TOP)/exercises/grade

variants: export SEED := $(SEED)
variants: export OUT := $(OUT)
variants: exercise-perl
	@$(TOP)/exercises/variants

exercise-flags: $(lesson_library)
	@printf '%s\n' '$(MPICC)' '$(exercise_compile)' '$(exercise_link)'

exercise-perl:
	@perl -MJSON::PP -MText::Wrap -MDigest::MD5 -MTime::HiRes -e 1 2>/dev/null || \
	    { echo 'the exercises need perl with the modules that come with it (package perl)' >&2; exit 1; }
