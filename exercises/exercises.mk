# Exercises: make exercise, make exercises, make solution, make grade. README.md beside this file.
exercise_settings = EXERCISE_BACKEND=$(backend) MPICC='$(MPICC)' EXERCISE_COMPILE='$(exercise_compile)' \
    EXERCISE_LINK='$(exercise_link)'

.PHONY: exercise exercises solution exercise-flags starters grade
exercise exercises solution grade: export N := $(N)
exercise: export HINT := $(HINT)
exercise: export WATCH := $(WATCH)
exercise: export RESET := $(RESET)

exercise: $(if $(HINT)$(RESET),,$(lesson_library) $(if $(filter cuda,$(backend)),check-library))
	@$(exercise_settings) $(TOP)/exercises/exercise run || true

exercises:
	@$(TOP)/exercises/exercise list

solution:
	@$(TOP)/exercises/exercise solution

starters:
	@$(TOP)/exercises/exercise starters

# What compiles and links an exercise, for those who ask without `make exercise`.
exercise_cublas := $(if $(filter cuda,$(backend)),-lcublas)
exercise-flags: $(lesson_library)
	@printf '%s\n' '$(MPICC)' '$(exercise_compile)' '$(exercise_link)'
exercise_compile = -std=c11 -O1 -g -Wall -Wextra -Wno-unused-parameter -I$(TOP)/common $($(backend)_compile)
exercise_link = -g $($(backend)_link) $(exercise_cublas)

# For instructors: GRADING.md beside this file.
grade: export DIR := $(DIR)
grade: export TESTS := $(TESTS)
grade: export OUT := $(OUT)
grade: export JOBS := $(JOBS)
grade: export TIME := $(TIME)
grade: export MEMORY := $(MEMORY)
grade: $(lesson_library)
	@$(exercise_settings) $(TOP)/exercises/grade
