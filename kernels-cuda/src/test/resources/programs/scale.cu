#include "scale.cuh"

extern "C" __global__ void scale(float* data, float by) {
  data[threadIdx.x] = scaled(data[threadIdx.x], by);
}
