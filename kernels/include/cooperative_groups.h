#include "cooperative_groups.cuh"
