// Operators on tensors of strings. Their elements have no form in compiled code: functions of the run time
// compute them.
#include "ops/common.h"

namespace bevel::ops {

namespace {

Result<Type> splitInfer(const OpCall& call, InferContext& context) {
  Array<Expr> parts = call.shape(0);
  parts.push_back(context.unknownDim("parts"));
  return tupleOf({tensorOf(call.dtype(0), parts), tensorOf(kInt64, call.shape(0))});
}

Result<Type> normalizeInfer(const OpCall& call, InferContext& context) {
  if (call.rank(0) < 1 || call.rank(0) > 2) return call.invalid("[n] or [1, n] is expected");
  Array<Expr> shape = call.shape(0);
  shape.set(shape.size() - 1, context.unknownDim("kept"));
  return tensorOf(call.dtype(0), shape);
}

Result<Type> toNumberInfer(const OpCall& call, InferContext&) {
  DType t = call.dtypeAttr("dtype");
  if (t != kFloat32 && t != DType::Float(64) && t != kInt32 && t != kInt64)
    return call.unsupported("gives float32, float64, int32 and int64 only");
  return tensorOf(t, call.shape(0));
}
Result<Type> fromNumberInfer(const OpCall& call, InferContext&) {
  return tensorOf(DType::String(), call.shape(0));
}

} // namespace

void register_text(OpRegistry& r) {
  r.add({.name = "text.concat",
         .doc = "a followed by b, with broadcasting. ONNX StringConcat.",
         .inputs = {OpInput("a").of(Elements::kStrings), OpInput("b").of(Elements::kStrings)},
         .infer = broadcastInfer,
         .packed = "bevel.text_concat",
         .onnx = {{"StringConcat", 20}}});
  r.add({.name = "text.equal",
         .doc = "Where a and b are the same text, with broadcasting. ONNX Equal on strings.",
         .inputs = {OpInput("a").of(Elements::kStrings), OpInput("b").of(Elements::kStrings)},
         .infer = compareInfer,
         .packed = "bevel.text_equal"});
  r.add({.name = "text.split",
         .doc = "The parts between delimiters, at most maxsplit + 1, and their numbers; without delimiter "
                "the words. ONNX StringSplit.",
         .inputs = {OpInput("x").of(Elements::kStrings)},
         .attrs = {strAttr("delimiter", ""), intAttr("maxsplit", -1)},
         .infer = splitInfer,
         .packed = "bevel.text_split",
         .dataDependent = true,
         .onnx = {{"StringSplit", 20}}});
  r.add({.name = "text.normalize",
         .doc = "Texts that are no stop words, in lower or upper case; one empty text where none is left. "
                "ONNX StringNormalizer.",
         .inputs = {OpInput("x").of(Elements::kStrings)},
         .attrs = {strAttr("case_change_action", "NONE"),
                   intAttr("is_case_sensitive", 0),
                   {"stopwords", AttrKind::kNode, list({})}},
         .infer = normalizeInfer,
         .packed = "bevel.text_normalize",
         .dataDependent = true,
         .onnx = {{"StringNormalizer", 10}}});
  r.add({.name = "text.to_number",
         .doc = "The numbers that texts spell. ONNX Cast of strings.",
         .inputs = {OpInput("x").of(Elements::kStrings)},
         .attrs = {required(dtypeAttr("dtype"))},
         .infer = toNumberInfer,
         .packed = "bevel.text_to_number"});
  r.add({.name = "text.from_number",
         .doc = "The shortest decimal that reads back as the same number. ONNX Cast to strings.",
         .inputs = {"x"},
         .infer = fromNumberInfer,
         .packed = "bevel.number_to_text"});
}

} // namespace bevel::ops
