# Exercises: make exercise, make exercises, make solution, make grade. README.md beside this file.
# Which makes of its own may start.
exercise_front := MAKEFLAGS= EXERCISE_BACKEND=$(backend) $(TOP)/exercises/exercise

.PHONY: exercise exercises solution exercise-flags starters grade
exercise exercises solution grade: export N := $(N)
exercise: export HINT := $(HINT)
exercise: export WATCH := $(WATCH)
exercise: export RESET := $(RESET)

exercise: $(if $(HINT)$(RESET),,$(lesson_library) $(if $(filter cuda,$(backend)),check-library))
	@$(exercise_front) run || true

exercises:
	@$(exercise_front) list

solution:
	@$(exercise_front) solution

starters:
	@$(exercise_front) starters

# What compiles and links an exercise, for those who ask without `make exercise`.
exercise_cublas := $(if $(filter cuda,$(backend)),-lcublas)
exercise-flags: $(lesson_library)
	@printf '%s\n' '$(MPICC)' '$(exercise_compile)' '$(exercise_link)'
exercise_compile = -std=c11 -O1 -g -Wall -Wextra -I$(TOP)/common $($(backend)_compile)
exercise_link = -g $($(backend)_link) $(exercise_cublas)
