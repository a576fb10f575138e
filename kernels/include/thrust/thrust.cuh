/* thrust.cuh: what programs with NCCL need of Thrust: vectors, pointers, and a few algorithms, which run on the
 * device where their first iterator is one of it, or a policy says so. Thrust documentation. */
#ifndef CPU_NVCC_THRUST_H
#define CPU_NVCC_THRUST_H
#pragma GCC system_header
#include <numeric>
#include "../cub/cub.cuh"
#define CPU_HD __host__ __device__

namespace thrust {
template <class T> struct device_ptr;
template <class T> struct device_reference {
    T *at;
    device_ptr<T> operator&() const { return device_ptr<T>(at); }
    operator T() const {
        std::remove_const_t<T> v;
        return cudaMemcpy((void *)&v, at, sizeof v, cudaMemcpyDefault), v;
    }
    const device_reference &operator=(T v) const {
        return cudaMemcpy((void *)at, &v, sizeof v, cudaMemcpyDefault), *this;
    }
    const device_reference &operator=(const device_reference &other) const { return *this = (T)other; }
};

template <class T> struct device_ptr {
    using value_type = std::remove_const_t<T>;
    using difference_type = ptrdiff_t;
    using pointer = device_ptr;
    using reference = device_reference<T>;
    using iterator_category = std::random_access_iterator_tag;
    T *raw = nullptr;
    device_ptr() = default;
    CPU_HD explicit device_ptr(T *p) : raw(p) {}
    template <class U> CPU_HD device_ptr(const device_ptr<U> &other) : raw(other.raw) {}
    CPU_HD T *get() const { return raw; }
    reference operator*() const { return {raw}; }
    reference operator[](ptrdiff_t i) const { return {raw + i}; }
    CPU_HD device_ptr operator+(ptrdiff_t n) const { return device_ptr(raw + n); }
    CPU_HD device_ptr operator-(ptrdiff_t n) const { return device_ptr(raw - n); }
    CPU_HD ptrdiff_t operator-(device_ptr other) const { return raw - other.raw; }
    CPU_HD device_ptr &operator++() { return ++raw, *this; }
    CPU_HD bool operator==(device_ptr other) const { return raw == other.raw; }
    CPU_HD bool operator!=(device_ptr other) const { return raw != other.raw; }
};
template <class T> device_ptr<T> device_pointer_cast(T *p) { return device_ptr<T>(p); }
template <class T> CPU_HD T raw_pointer_cast(T p) { return p; }
template <class T> CPU_HD T *raw_pointer_cast(device_ptr<T> p) { return p.raw; }

/* Iterators that go to the host's memory have an address: &*i. */
template <class T> const T *__cpu_address(device_ptr<T> p) { return p.raw; }
template <class I> auto __cpu_address(I i) { return &*i; }
template <class I, class O> O copy(I first, I last, O to) {
    if (last - first)
        cudaMemcpy((void *)__cpu_address(to), __cpu_address(first), (size_t)(last - first) * sizeof *__cpu_address(first),
            cudaMemcpyDefault);
    return to + (last - first);
}

struct __cpu_policy {
    cudaStream_t stream;
    __cpu_policy on(cudaStream_t other) const { return {other}; }
};
static const __cpu_policy device = {0};
namespace cuda {
static const __cpu_policy par = {0};
}
template <class F> __global__ void __cpu_each(size_t n, F f) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        f(i);
}
#define CPU_EACH(n, ...)                                                                           \
    if ((n) > 0)                                                                                   \
        __cpu_each<<<(unsigned)(((n) + 255) / 256), 256, 0, policy.stream>>>(                      \
            (size_t)(n), [=] __device__(size_t i) mutable { __VA_ARGS__; });                       \
    cudaStreamSynchronize(policy.stream);
template <class I, class T> void fill(const __cpu_policy &policy, I first, I last, T value) {
    auto out = raw_pointer_cast(first);
    CPU_EACH(last - first, out[i] = value)
}
template <class I> void sequence(const __cpu_policy &policy, I first, I last) {
    auto out = raw_pointer_cast(first);
    CPU_EACH(last - first, out[i] = (typename std::iterator_traits<I>::value_type)i)
}
template <class I, class O, class F> O transform(const __cpu_policy &policy, I first, I last, O to, F f) {
    auto in = raw_pointer_cast(first);
    auto out = raw_pointer_cast(to);
    CPU_EACH(last - first, out[i] = f(in[i]))
    return to + (last - first);
}
template <class I, class J, class O, class F>
O transform(const __cpu_policy &policy, I first, I last, J second, O to, F f) {
    auto in = raw_pointer_cast(first);
    auto other = raw_pointer_cast(second);
    auto out = raw_pointer_cast(to);
    CPU_EACH(last - first, out[i] = f(in[i], other[i]))
    return to + (last - first);
}
template <class I, class T = typename std::iterator_traits<I>::value_type, class F = cub::Sum>
T reduce(const __cpu_policy &policy, I first, I last, T begin = T(), F f = F()) {
    T *out, result;
    cudaMalloc((void **)&out, sizeof *out);
    cub::__cpu_reduce<<<1, 1, 0, policy.stream>>>(raw_pointer_cast(first), out, (size_t)(last - first), f, begin);
    cudaStreamSynchronize(policy.stream);
    cudaMemcpy(&result, out, sizeof result, cudaMemcpyDefault);
    cudaFree(out);
    return result;
}
#undef CPU_EACH

/* Without a policy: on the host std's, of the same name or of another one. */
#define CPU_BY_KIND(name, on_host)                                                          \
    template <class T, class... A> auto name(device_ptr<T> first, device_ptr<T> last, A... more) { \
        return thrust::name(device, first, last, more...);                                  \
    }                                                                                       \
    template <class I, class... A, class = decltype(*std::declval<I>())> auto name(I first, I last, A... more) { \
        return on_host;                                                                     \
    }
CPU_BY_KIND(fill, std::fill(first, last, more...))
CPU_BY_KIND(sequence, std::iota(first, last, 0))
CPU_BY_KIND(transform, std::transform(first, last, more...))
CPU_BY_KIND(reduce, (std::accumulate(first, last, more...)))
#undef CPU_BY_KIND

template <class T> struct device_vector;
template <class T> struct host_vector : std::vector<T> {
    using std::vector<T>::vector;
    host_vector(const device_vector<T> &from) : std::vector<T>(from.size()) { thrust::copy(from.begin(), from.end(), this->begin()); }
};
template <class T> struct device_vector {
    using value_type = T;
    using iterator = device_ptr<T>;
    device_vector() = default;
    explicit device_vector(size_t n, T value = T()) { resize(n, value); }
    device_vector(const device_vector &other) { *this = other; }
    device_vector(const std::vector<T> &other) { *this = other; }
    template <class I, class = decltype(*std::declval<I>())> device_vector(I first, I last) {
        resize((size_t)(last - first));
        thrust::copy(first, last, begin());
    }
    ~device_vector() { cudaFree(start.raw); }
    device_vector &operator=(const device_vector &other) {
        return resize(other.count), thrust::copy(other.begin(), other.end(), begin()), *this;
    }
    device_vector &operator=(const std::vector<T> &other) {
        return resize(other.size()), thrust::copy(other.begin(), other.end(), begin()), *this;
    }
    void resize(size_t n, T value = T()) {
        device_ptr<T> old = start;
        if (n > room) {
            cudaMalloc((void **)&start.raw, n * sizeof(T));
            thrust::copy(old, old + (ptrdiff_t)count, start);
            cudaFree(old.raw);
            room = n;
        }
        if (n > count)
            thrust::fill(start + (ptrdiff_t)count, start + (ptrdiff_t)n, value);
        count = n;
    }
    device_ptr<T> begin() const { return start; }
    device_ptr<T> end() const { return start + (ptrdiff_t)count; }
    device_ptr<T> data() const { return start; }
    device_reference<T> operator[](size_t i) const { return {start.raw + i}; }
    size_t size() const { return count; }
    bool empty() const { return count == 0; }
    void clear() { count = 0; }

private:
    device_ptr<T> start;
    size_t count = 0, room = 0;
};

#define CPU_OP(name, parameters, result)                                         \
    template <class T = void> struct name {                                      \
        template <class V> CPU_HD V operator() parameters const { return result; } \
    };
CPU_OP(plus, (V a, V b), a + b)
CPU_OP(minus, (V a, V b), a - b)
CPU_OP(multiplies, (V a, V b), a * b)
CPU_OP(maximum, (V a, V b), a < b ? b : a)
CPU_OP(minimum, (V a, V b), b < a ? b : a)
CPU_OP(negate, (V a), -a)
#undef CPU_OP
} // namespace thrust

#endif
