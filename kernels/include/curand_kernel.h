/* curand_kernel.h: random numbers in kernels. All generators are Philox 4x32-10, so a
 * GPU's default generator gives different numbers. cuRAND documentation, "Device API";
 * Salmon and others, "Parallel Random Numbers: As Easy as 1, 2, 3". */
#ifndef CPU_NVCC_CURAND_KERNEL_H
#define CPU_NVCC_CURAND_KERNEL_H
#pragma GCC system_header

struct curandStatePhilox4_32_10 {
    unsigned counter[4], key[2], numbers[4];
    unsigned next; // of the numbers
    float spare;   // of two from a normal distribution
    bool has_spare;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t, curandState, curandState_t, curandStateXORWOW,
    curandStateXORWOW_t, curandStateMRG32k3a, curandStateMRG32k3a_t;

CPU_DEVICE void __cpu_philox(curandState *s) {
    unsigned c[4], k0 = s->key[0], k1 = s->key[1];
    __builtin_memcpy(c, s->counter, sizeof c);
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        unsigned long long a = 0xd2511f53ull * c[0], b = 0xcd9e8d57ull * c[2];
        unsigned next[4] = {(unsigned)(b >> 32) ^ c[1] ^ k0, (unsigned)b, (unsigned)(a >> 32) ^ c[3] ^ k1, (unsigned)a};
        __builtin_memcpy(c, next, sizeof c);
    }
    __builtin_memcpy(s->numbers, c, sizeof c);
    for (int i = 0; i < 4 && ++s->counter[i] == 0; i++)
        ;
}
CPU_DEVICE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                            curandState *s) {
    *s = curandState{
        {(unsigned)(offset / 4), (unsigned)(offset / 4 >> 32), (unsigned)subsequence, (unsigned)(subsequence >> 32)},
        {(unsigned)seed, (unsigned)(seed >> 32)}};
    __cpu_philox(s);
    s->next = (unsigned)(offset % 4);
}
CPU_DEVICE unsigned curand(curandState *s) {
    if (s->next == 4) {
        __cpu_philox(s);
        s->next = 0;
    }
    return s->numbers[s->next++];
}
CPU_FN(float, curand_uniform, (curandState * s), (float)(curand(s) >> 8) * 0x1p-24f + 0x1p-25f)
CPU_FN(double, curand_uniform_double, (curandState * s),
       ((curand(s) >> 5) * 67108864.0 + (curand(s) >> 6)) * 0x1p-53 + 0x1p-54)
CPU_DEVICE float2 curand_normal2(curandState *s) {
    float r = sqrtf(-2 * logf(curand_uniform(s))), a = 6.2831853f * curand_uniform(s);
    return float2{r * sinf(a), r * cosf(a)};
}
CPU_DEVICE float curand_normal(curandState *s) {
    s->has_spare = !s->has_spare;
    if (!s->has_spare)
        return s->spare;
    float2 two = curand_normal2(s);
    s->spare = two.y;
    return two.x;
}
CPU_DEVICE double curand_normal_double(curandState *s) {
    double r = sqrt(-2 * log(curand_uniform_double(s)));
    return r * sin(6.283185307179586 * curand_uniform_double(s));
}
CPU_FN(float4, curand_uniform4, (curandState * s),
       float4{curand_uniform(s), curand_uniform(s), curand_uniform(s), curand_uniform(s)})
CPU_FN(float4, curand_normal4, (curandState * s),
       float4{curand_normal(s), curand_normal(s), curand_normal(s), curand_normal(s)})

#endif
