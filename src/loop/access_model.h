// The accesses of a statement as the questions of legality see them: found once, when the first question comes.
#pragma once

#include "arith/linear_form.h"
#include "loop/regions.h"

#include <optional>

namespace bevel {

class AccessModel {
public:
  struct Entry {
    BufferAccess access;
    std::vector<std::optional<arith::LinearForm>> forms; // of each index that is a plain sum of variables
  };
  Stmt root;
  std::vector<Stmt> around; // the statements around it, the root of the program first

  explicit AccessModel(Stmt r, std::vector<Stmt> a = {}, AccessOptions options = {})
      : root(std::move(r)), around(std::move(a)), options_(options) {}
  const std::vector<Entry>& entries() const {
    if (!entries_) entries_ = collect();
    return *entries_;
  }

private:
  std::vector<Entry> collect() const {
    std::vector<Entry> out;
    for (BufferAccess& a : collectAccesses(root, options_)) {
      std::vector<std::optional<arith::LinearForm>> forms;
      for (const Range& r : a.region) forms.push_back(arith::plainForm(r->min));
      out.push_back({std::move(a), std::move(forms)});
    }
    return out;
  }
  AccessOptions options_;
  mutable std::optional<std::vector<Entry>> entries_;
};

} // namespace bevel
