// Slices, splits, padding, ranges, and indexing that needs more than renaming.
#include "import/onnx_helpers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bevel::onnx {

namespace {

Result<Values> slice1(Node& n) {
  Ints starts = n.attrInts("starts"), ends = n.attrInts("ends"), axes = n.attrInts("axes");
  if (axes.empty()) axes = upTo(0, int64_t(starts.size()));
  return n.emit("strided_slice", {n.x(0), dims(starts), dims(ends), dims(Ints(starts.size(), 1))},
                {{"axes", axes}});
}

// Axes that only the run knows: every axis takes the bounds of the value that names it.
Result<Values> sliceAt(Node& n, const Array<Expr>& axes, const Array<Expr>& starts, const Array<Expr>& ends,
                       const Array<Expr>& steps) {
  if (axes.size() != starts.size()) return n.invalid("one axis a bound is needed");
  int64_t rank = int64_t(n.rank(0));
  BEVEL_CHECK(checkAxes(n, axes, rank));
  Array<Expr> begin, end, step;
  for (int64_t d = 0; d < rank; ++d) {
    Expr b = intImm(0), e = n.shape(0)[size_t(d)], s = intImm(1);
    for (size_t k = 0; k < axes.size(); ++k) {
      Expr here = isAmong({axes[k]}, d, rank);
      b = select(here, starts[k], b);
      e = select(here, ends[k], e);
      s = select(here, steps[k], s);
    }
    begin.push_back(b);
    end.push_back(e);
    step.push_back(s);
  }
  return n.emit("strided_slice", {n.x(0), named(n, begin), named(n, end), named(n, step)});
}

Result<Values> slice10(Node& n) {
  BEVEL_TRY(Array<Expr> starts, n.ints(1));
  BEVEL_TRY(Array<Expr> ends, n.ints(2));
  if (ends.size() != starts.size()) return n.invalid("starts and ends have different lengths");
  Array<Expr> steps = dims(Ints(starts.size(), 1));
  if (n.has(4)) {
    BEVEL_TRY(steps, n.ints(4));
  }
  if (steps.size() != starts.size()) return n.invalid("starts and steps have different lengths");
  for (const Expr& s : steps) BEVEL_CHECK(n.check(ne(s, intImm(0)), "a step of zero"));
  Ints axes = upTo(0, int64_t(starts.size()));
  if (n.has(3)) {
    auto given = n.constInts(3);
    if (!given) {
      BEVEL_TRY(Array<Expr> unknown, n.ints(3));
      return sliceAt(n, unknown, starts, ends, steps);
    }
    axes = *given;
  }
  bool whole = true; // nothing is cut off
  for (size_t i = 0; i < starts.size(); ++i)
    whole = whole && isConst(starts[i], 0) && asConst(ends[i]).value_or(0) >= (int64_t(1) << 40) &&
            isConst(steps[i], 1);
  if (whole) return Values{n.in(0)};
  return n.emit("strided_slice", {n.x(0), starts, ends, steps}, {{"axes", axes}});
}

Result<Values> splitBy(Node& n, int64_t axis, const Array<Expr>& sizes) {
  Values out;
  Expr start = intImm(0);
  for (const Expr& size : sizes) {
    Expr end = n.analyzer().simplify(start + size);
    BEVEL_TRY(GraphExpr e, n.x(0).slice(axis, start, end));
    out.push_back(n.value(e));
    start = end;
  }
  return out;
}

Result<Values> split(Node& n) {
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", 0), n.rank(0)));
  size_t parts = n.proto.outputs.size();
  Expr total = n.shape(0)[size_t(axis)];
  Array<Expr> sizes;
  if (n.hasAttr("split") || n.has(1)) {
    if (n.hasAttr("split")) {
      sizes = dims(n.attrInts("split"));
    } else {
      BEVEL_TRY(sizes, n.ints(1));
    }
    Expr sum = intImm(0);
    for (const Expr& s : sizes) {
      BEVEL_CHECK(n.check(s >= intImm(0), "a size is negative"));
      sum = sum + s;
    }
    BEVEL_CHECK(n.check(eq(sum, total), "the sizes do not add up to the axis"));
  } else {
    int64_t count = n.attrInt("num_outputs", int64_t(parts));
    if (count < 1 || count > 65536 || parts == 0) return n.invalid("num_outputs is out of range");
    auto c = asConst(total);
    if (c && n.opset < 18 && *c % count != 0) return n.invalid("the axis does not divide into equal parts");
    Expr each = n.analyzer().simplify(floordiv(total + intImm(count - 1), count)), start = intImm(0);
    for (int64_t i = 0; i < count; ++i) {
      Expr end = n.analyzer().simplify(min(start + each, total));
      sizes.push_back(n.analyzer().simplify(end - start));
      start = end;
    }
  }
  if (sizes.size() < parts) return n.invalid(fmt::format("{} sizes for {} outputs", sizes.size(), parts));
  return splitBy(n, axis, sizes);
}

Result<Values> tile(Node& n) {
  BEVEL_TRY(Array<Expr> repeats, n.ints(1));
  return n.emit("tile", {n.x(0), repeats});
}

Result<Values> tile1(Node& n) { // tiles and axis are scalars
  BEVEL_TRY(Array<Expr> tiles, n.ints(1));
  auto axis = n.constInts(2);
  if (!axis || axis->size() != 1 || tiles.size() != 1)
    return n.unsupported("an axis that only the run knows");
  BEVEL_TRY(int64_t a, axisOf(n, (*axis)[0], n.rank(0)));
  Array<Expr> repeats;
  for (size_t d = 0; d < n.rank(0); ++d) repeats.push_back(int64_t(d) == a ? tiles[0] : intImm(1));
  return n.emit("tile", {n.x(0), repeats});
}

Term padBy(Node& n, const Array<Expr>& pads, const Term& value) {
  return n.emit("nn.pad", {n.x(0), pads, value}, {{"mode", n.attrStr("mode", "constant")}});
}

Result<Values> pad1(Node& n) {
  Ints pads = n.hasAttr("pads") ? n.attrInts("pads") : n.attrInts("paddings");
  if (!n.dtype(0).isFloat() && n.attrFloat("value", 0) != 0) return n.unsupported("a pad value on integers");
  return padBy(n, dims(pads), Node::scalarConstant(n.dtype(0), n.attrFloat("value", 0)));
}

Result<Values> pad11(Node& n) {
  BEVEL_TRY(Array<Expr> pads, n.ints(1));
  size_t rank = n.rank(0);
  if (n.has(3)) { // axes
    BEVEL_TRY(Array<Expr> axes, n.ints(3));
    if (pads.size() != 2 * axes.size()) return n.invalid("pads and axes do not fit");
    BEVEL_CHECK(checkAxes(n, axes, int64_t(rank)));
    Array<Expr> full;
    for (size_t side = 0; side < 2; ++side)
      for (int64_t d = 0; d < int64_t(rank); ++d) {
        Expr pad = intImm(0);
        for (size_t i = 0; i < axes.size(); ++i) {
          Expr here = isAmong({axes[i]}, d, int64_t(rank));
          pad = n.analyzer().simplify(select(here, pads[side * axes.size() + i], pad));
        }
        full.push_back(pad);
      }
    pads = full;
  }
  return padBy(n, pads, n.rank(2) == 1 ? n.x(2).scalar() : n.x(2));
}

// Axes cropped or padded with zeros around their centre to given extents.
Result<Values> centerCropPad(Node& n) {
  BEVEL_TRY(Array<Expr> wanted, n.ints(1));
  Ints axes = n.hasAttr("axes") ? n.attrInts("axes") : upTo(0, int64_t(n.rank(0)));
  if (axes.size() != wanted.size()) return n.invalid("one extent an axis is needed");
  size_t rank = n.rank(0);
  Array<Expr> begin = dims(Ints(rank, 0)), end = n.shape(0), pads = dims(Ints(2 * rank, 0));
  Analyzer& an = n.analyzer();
  for (size_t k = 0; k < axes.size(); ++k) {
    BEVEL_TRY(int64_t a, axisOf(n, axes[k], rank));
    const Expr extent = n.shape(0)[size_t(a)], kept = an.simplify(min(extent, wanted[k]));
    Expr start = an.simplify(max(floordiv(extent - wanted[k], 2), intImm(0)));
    Expr before = an.simplify(max(floordiv(wanted[k] - extent, 2), intImm(0)));
    begin.set(size_t(a), start);
    end.set(size_t(a), an.simplify(start + kept));
    pads.set(size_t(a), before);
    pads.set(rank + size_t(a), an.simplify(wanted[k] - kept - before));
  }
  Term cropped = n.emit("strided_slice", {n.x(0), begin, end, dims(Ints(rank, 1))});
  return n.emit("nn.pad", {cropped, pads});
}

// Number of elements of a range of floats: computed by the run, read into a shape.
Result<Expr> floatCount(Node& n) {
  Term ratio = (n.x(1) - n.x(0)) / n.x(2);
  BEVEL_TRY(Array<Expr> count, n.ints(ratio.apply("ceil").cast(kInt64)));
  return n.analyzer().simplify(max(count[0], intImm(0)));
}

// ceil((limit - start) / step), in either direction.
Result<Expr> integerCount(Node& n, const Expr& start, const Expr& limit, const Expr& step) {
  Analyzer& an = n.analyzer();
  auto from = asConst(start), to = asConst(limit), s = asConst(step);
  if (from && to && s) {
    __int128 span = __int128(*to) - *from, size = *s;
    if (size < 0) span = -span, size = -size;
    __int128 elements = span > 0 ? (span + size - 1) / size : 0;
    if (elements > __int128(1) << 42) return n.unsupported("a range that does not fit any memory");
    return intImm(int64_t(elements));
  }
  auto isSmall = [&](const Expr& e) { // differences do not overflow
    constexpr int64_t kMost = int64_t(1) << 61;
    return an.prove(e >= intImm(-kMost)) && an.prove(e <= intImm(kMost));
  };
  if (s && isSmall(start) && isSmall(limit) && isSmall(step)) {
    Expr span = *s > 0 ? limit - start : start - limit;
    Expr count = an.simplify(floordiv(span + intImm(std::abs(*s) - 1), std::abs(*s)));
    return an.prove(count >= intImm(0)) ? count : an.simplify(max(count, intImm(0)));
  }
  // Any integers: upwards (downwards, -1 - x grows), quotients and remainders apart.
  BEVEL_CHECK(n.check(step > intImm(std::numeric_limits<int64_t>::min()), "the step is out of range"));
  auto upwards = [&](const Expr& x) { return select(step > intImm(0), x, intImm(-1) - x); };
  Expr size = select(step > intImm(0), step, negate(step));
  Array<Expr> ends = named(n, {upwards(start), max(upwards(start), upwards(limit)), size});
  Expr first = floordiv(ends[0], ends[2]), last = floordiv(ends[1], ends[2]);
  BEVEL_CHECK(n.check(floordiv(last, 2) - floordiv(first, 2) < intImm(int64_t(1) << 60),
                      "a range that does not fit any memory"));
  Expr more = select(floormod(ends[1], ends[2]) > floormod(ends[0], ends[2]), intImm(1), intImm(0));
  return named(n, {last - first + more})[0];
}

Result<Values> range(Node& n) {
  for (size_t i = 0; i < 3; ++i)
    if (n.rank(i) > 1 || (n.rank(i) == 1 && !isConst(n.shape(i)[0], 1)))
      return n.invalid("scalars are expected");
  Expr count;
  if (n.dtype(0).isFloat()) {
    if (n.scalar(2) == 0.0) return n.invalid("a step of zero");
    BEVEL_TRY(count, floatCount(n));
  } else {
    BEVEL_TRY(Array<Expr> start, n.ints(0));
    BEVEL_TRY(Array<Expr> limit, n.ints(1));
    BEVEL_TRY(Array<Expr> step, n.ints(2));
    BEVEL_CHECK(n.check(ne(step[0], intImm(0)), "a step of zero"));
    BEVEL_TRY(count, integerCount(n, start[0], limit[0], step[0]));
  }
  return n.emit("arange", {n.x(0).scalar(), n.x(2).scalar(), Array<Expr>{count}});
}

Result<Values> eyeLike(Node& n) {
  BEVEL_TRY(DType t, n.attrType("dtype", n.dtype(0)));
  return n.emit("eye", {n.shape(0)}, {{"k", n.attrInt("k", 0)}, {"dtype", t}});
}

Result<Values> trilu(Node& n) {
  Array<Expr> k = {intImm(0)};
  if (n.has(1)) {
    BEVEL_TRY(k, n.ints(1));
  }
  return n.emit("trilu", {n.x(0), k}, {{"upper", n.attrInt("upper", 1)}});
}

Result<Values> oneHot(Node& n) {
  BEVEL_TRY(Array<Expr> depth, n.dtype(1).isFloat() ? n.ints(n.x(1).cast(kInt64)) : n.ints(1));
  if (depth.size() != 1) return n.invalid("the depth must be a scalar");
  Term indices = n.dtype(0).isFloat() ? n.x(0).cast(kInt64) : n.x(0);
  return n.emit("one_hot", {indices, n.x(2), depth}, {{"axis", n.attrInt("axis", -1)}});
}

Term accumulated(Node& n, const Term& x, int64_t axis) {
  return x.apply(
      n.proto.opType == "CumProd" ? "cumprod" : "cumsum",
      {{"axis", axis}, {"exclusive", n.attrInt("exclusive", 0)}, {"reverse", n.attrInt("reverse", 0)}});
}

// The axis is a value of the run: x seen as [before, axis, behind] with symbolic extents.
Result<Values> cumulativeAt(Node& n) {
  BEVEL_TRY(Array<Expr> values, n.ints(1));
  if (values.size() != 1) return n.invalid("the axis must be a scalar");
  int64_t rank = int64_t(n.rank(0));
  BEVEL_CHECK(checkAxes(n, values, rank));
  Expr axis = select(values[0] < intImm(0), values[0] + intImm(rank), values[0]);
  Expr parts[3] = {intImm(1), intImm(1), intImm(1)};
  for (int64_t d = 0; d < rank; ++d) {
    const Expr& extent = n.shape(0)[size_t(d)];
    parts[0] = parts[0] * select(axis > intImm(d), extent, intImm(1));
    parts[1] = parts[1] * select(eq(axis, intImm(d)), extent, intImm(1));
    parts[2] = parts[2] * select(axis < intImm(d), extent, intImm(1));
  }
  Term e = n.x(0).reshape(named(n, {parts[0], parts[1], parts[2]}));
  return accumulated(n, e, 1).reshape(n.shape(0));
}

Result<Values> cumulative(Node& n) {
  auto axis = n.constInts(1);
  if (!axis) return cumulativeAt(n);
  if (axis->size() != 1) return n.invalid("the axis must be a scalar");
  return accumulated(n, n.x(0), (*axis)[0]);
}

// One after the other. The start of an input is the sum of all extents before it: where the run knows many of them,
// groups come first, whose extents get names, so that no sum is long.
Term concatAll(Node& n, const Array<GraphExpr>& all, size_t axis) {
  constexpr size_t kMost = 16;
  auto symbolic = [&](const GraphExpr& e) { return rankOf(e) > axis && !asConst(shapeOfExpr(e)[axis]); };
  if (all.size() <= kMost || std::ranges::count_if(all, symbolic) <= int64_t(kMost))
    return n.emit("concat", all, {{"axis", axis}});
  Array<GraphExpr> groups;
  for (size_t k = 0; k < all.size(); k += kMost) {
    Array<GraphExpr> part;
    for (size_t i = k; i < std::min(k + kMost, all.size()); ++i) part.push_back(all[i]);
    Term group = concatAll(n, part, axis);
    if (!group) return group;
    Array<Expr> shape = shapeOfExpr(*group);
    shape.set(axis, named(n, {shape[axis]})[0]);
    groups.push_back(n.builder().matchCast(*group, make<const TensorTypeNode>(dtypeOfExpr(*group), shape)));
  }
  return concatAll(n, groups, axis);
}

template <int otherwise> Result<Values> concat(Node& n) {
  int64_t axis = n.attrInt("axis", otherwise), rank = int64_t(n.rank(0));
  if (axis < -rank || axis >= rank) return n.invalid("axis is out of range");
  return concatAll(n, n.all(), size_t(axis < 0 ? axis + rank : axis));
}

// sequence_lens per batch: positions below the length are mirrored, by an index tensor for gather_elements.
Result<Values> reverseSequence(Node& n) {
  int64_t timeAxis = n.attrInt("time_axis", 0), batchAxis = n.attrInt("batch_axis", 1);
  if (n.rank(0) < 2 || n.rank(1) != 1 || timeAxis + batchAxis != 1 || timeAxis < 0 || batchAxis < 0)
    return n.invalid("axes 0 and 1 are expected");
  Expr steps = n.shape(0)[size_t(timeAxis)];
  BEVEL_CHECK(
      n.check(eq(n.shape(1)[0], n.shape(0)[size_t(batchAxis)]), "there is not one length for each sequence"));
  BEVEL_CHECK(checkElements(n, n.x(1), intImm(0), steps, "a length lies beyond the time"));
  Term t = indicesTo(n, steps).unsqueeze({batchAxis});
  Term length = n.x(1).cast(kInt64).unsqueeze({timeAxis});
  Term mirrored = length - t - 1;
  Term index = where(n, t < length, mirrored, t);
  index = index.unsqueeze(upTo(2, int64_t(n.rank(0)))).broadcast(n.shape(0));
  return n.emit("gather_elements", {n.x(0), index}, {{"axis", timeAxis}});
}

// update written into the cache along an axis, from a position of its own for each batch; circular: around
// the end.
Result<Values> tensorScatter(Node& n) { // cache, update, positions
  BEVEL_TRY(int64_t axis, axisOf(n, n.attrInt("axis", -2), n.rank(0)));
  if (axis == 0 || n.rank(1) != n.rank(0))
    return n.invalid("an axis behind the batch, and an update of the cache's rank are expected");
  std::string mode = n.attrStr("mode", "linear");
  if (mode != "linear" && mode != "circular") return n.invalid("unknown mode " + mode);
  int64_t rank = int64_t(n.rank(0));
  Term at = indicesTo(n, n.shape(0)[size_t(axis)]).unsqueeze(upTo(1, rank - axis));
  if (n.has(2)) at = at - n.x(2).unsqueeze(upTo(1, rank));
  Term size = n.emit("shape_to_tensor", {Array<Expr>{n.shape(0)[size_t(axis)]}});
  Term count = n.emit("shape_to_tensor", {Array<Expr>{n.shape(1)[size_t(axis)]}});
  if (mode == "circular") at = n.emit("floor_mod", {at, size});
  Term below = at < count, above = at >= 0;
  Term inside = n.emit("logical_and", {above, below});
  Term index = where(n, inside, at, 0).broadcast(n.shape(0));
  Term written = n.emit("gather_elements", {n.x(1), index}, {{"axis", axis}});
  return where(n, inside, written, n.x(0));
}

} // namespace

std::vector<Conversion> moveConversions() {
  return {{"TensorScatter", 24, tensorScatter, 2},
          {"Slice", 1, slice1, 1},
          {"Slice", 10, slice10, 1},
          {"Split", 1, split, 1},
          {"Tile", 1, tile1, 3},
          {"Tile", 6, tile, 2},
          {"Pad", 1, pad1, 1},
          {"Pad", 11, pad11, 1},
          {"Range", 11, range, 3},
          {"EyeLike", 9, eyeLike, 1},
          {"Trilu", 14, trilu, 1},
          {"OneHot", 9, oneHot, 3},
          {"CumSum", 11, cumulative, 2},
          {"CumProd", 26, cumulative, 2},
          {"Concat", 1, concat<1>},
          {"Concat", 4, concat<0>},
          {"ReverseSequence", 10, reverseSequence, 2},
          {"CenterCropPad", 18, centerCropPad, 2}};
}

} // namespace bevel::onnx
