// See near_name.h.
#include "base/near_name.h"

#include <algorithm>
#include <utility>

namespace bevel {
namespace {

// Levenshtein distance, given up beyond `limit`.
size_t editDistance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size() + limit || b.size() > a.size() + limit || a.size() > 64 || b.size() > 64)
    return limit + 1;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

} // namespace

std::string didYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  size_t limit = name.size() < 2 ? 0 : name.size() <= 3 ? 1 : name.size() <= 6 ? 2 : 3, best = limit + 1;
  std::string found;
  for (const std::string& c : candidates) {
    size_t d = editDistance(name, c, limit);
    if (d < best || (d == best && d <= limit && c < found)) best = d, found = c;
  }
  return found.empty() ? "" : "did you mean '" + found + "'?";
}

} // namespace bevel
