// Transcendental functions as IR: fp32 polynomials of any vector width, so that loops contain no library
// calls.
//
//   T.exp(x)   →   let t = fma(x, log2(e), 1.5*2^23) in … p * reinterpret((n >> 1) + 127 << 23) * …
//
// Accuracy (checked against fp64 over the whole range, tests/loop/vector_math_test.cc) is stated in
// docs/numerics.md.
#pragma once

#include "ir/build.h"

namespace bevel {

/// The call as arithmetic on values of its dtype; null when there is no expansion (fp64, integer arguments,
/// functions that stay library calls). Evaluates each argument once. Special values as in C: NaN in, NaN out;
/// infinities exact.
Expr expandIntrinsic(const Call& call);

} // namespace bevel
