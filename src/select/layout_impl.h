// The mutator of select/layout.cc, split over layout.cc (forms of values) and layout_ops.cc (operators).
#pragma once

#include "arith/analyzer.h"
#include "graph/mutator.h"
#include "graph/pattern.h"
#include "graph/shape_util.h"
#include "ir/question.h"

#include <unordered_map>

namespace bevel::layout {

/// The logical axis at each physical position. Channels last for rank 4: 0, 2, 3, 1.
using Order = std::vector<int64_t>;
Order identityOrder(size_t rank);
Order lastOrder(size_t rank); // ranks below 3 have no spatial axes: the identity
bool isIdentity(const Order& order);
int64_t positionOf(const Order& order, int64_t axis);
/// The axes of a permute_dims that takes one order to another.
Order permutation(const Order& from, const Order& to);
/// Whether a permutation of a shape moves nothing but axes of one element.
bool movesOnlyOnes(const Array<Expr>& shape, const Order& axes);
/// The axes of a permute_dims, none negative; nothing when they are no permutation of a known tensor's.
std::optional<Order> permutationOf(const GraphCallNode& c);

/// A value whose axes lie in another order than those of the variable it stands for.
struct Form {
  GraphExpr value; // a leaf; of results: may be a call not yet bound
  Order order;
};

/// What a variable of the function is available as.
struct State {
  GraphExpr logical; // null until something asks for it
  std::vector<Form> forms;
};

class Chooser : public ExprMutator {
public:
  Chooser(Module module, const Ask& ask) : ExprMutator(std::move(module)), ask_(ask) {}
  int64_t converted = 0; // convolutions and poolings

protected:
  GraphExpr visitExpr(const GraphExpr& e) override;
  Status visitSeqBody(const SeqExpr& seq, GraphExpr& result) override;
  Status visitBinding(const VarBinding& b) override;
  Status visitBlock(const BindingBlock& block) override;

private:
  // layout.cc
  GraphExpr bind(const GraphExpr& value, const std::string& hint);
  GraphExpr rearrange(const Form& from, const Order& to, const std::string& hint);
  GraphExpr formOf(const GraphExpr& e, const Order& order);
  GraphExpr broadcastForm(const GraphExpr& e, const Order& order);
  const std::vector<Form>* formsOf(const GraphExpr& e) const;
  bool hasLast(const GraphExpr& e) const;
  Status bindResult(const GraphVar& v, Form made);
  bool agrees(const Form& made, const Type& type, const Type& logical);

  // layout_ops.cc: the result of a call in another form, or nothing to leave the call as it is
  std::optional<Form> convert(const GraphCallNode& c, const VarBinding& b);
  std::optional<Form> convertConv(const GraphCallNode& c, const VarBinding& b);
  Result<bool> wantsLast(const GraphCallNode& c, const VarBinding& b);
  std::optional<Form> convertPool(const GraphCallNode& c);
  std::optional<Form> convertElementwise(const GraphCallNode& c, size_t rank);
  std::optional<Form> convertConcat(const GraphCallNode& c);
  std::optional<Form> convertAxis(const GraphCallNode& c, const Form& x);
  std::optional<Form> convertSlice(const GraphCallNode& c, const Form& x);
  std::optional<Form> convertPerAxis(const GraphCallNode& c, const Form& x, size_t lists);
  std::optional<Form> convertReduce(const GraphCallNode& c, const Form& x);
  std::optional<Form> convertTake(const GraphCallNode& c, const Form& x);
  std::optional<Form> convertPermute(const GraphCallNode& c);
  std::optional<Form> convertReshape(const GraphCallNode& c, const Form& x, const TensorTypeNode& result);
  std::optional<Order> commonOrder(const GraphCallNode& c, size_t rank);
  std::optional<Form> ofForms(const GraphCallNode& c, const Order& order, Dict attrs);
  std::optional<Form> withArg(const GraphCallNode& c, const Form& x, Dict attrs, Order order);

  const Ask& ask_;
  std::unordered_map<GraphVar, State, RefHash> states_;
};

Tensor reshapeHost(const Tensor& t, const std::vector<int64_t>& shape);
bool allOnes(const TensorTypeNode& t);

/// Whether the call is a convolution (or a transposed one) in the logical layout, of which the channels are known.
bool isConvolution(const GraphCallNode& c);

} // namespace bevel::layout
