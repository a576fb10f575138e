#include "thrust.cuh"
