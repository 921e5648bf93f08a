// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shrink.hpp"

namespace bestride::test {
namespace {

using Visit = std::function<bool(TypeExpression&)>;

/// Calls `visit` for every subtree, the root first, until it returns true.
bool any_subtree(TypeExpression& type, const Visit& visit) {
  if (visit(type)) return true;
  for (TypeExpression& child : type.children)
    if (any_subtree(child, visit)) return true;
  return false;
}

class Shrinker {
 public:
  Shrinker(TypeExpression type, const std::function<bool(const TypeExpression&)>& fails, int budget)
      : best_(std::move(type)), fails_(fails), budget_(budget) {}

  TypeExpression run() {
    while (budget_ > 0 && step()) {
    }
    return best_;
  }

 private:
  /// Makes one improvement. Returns true if `best_` changed.
  bool step() {
    return any_subtree(best_, [&](TypeExpression& here) { return smaller_trees(here); }) ||
           any_subtree(best_, [&](TypeExpression& here) { return shorter_lists(here); }) ||
           any_subtree(best_, [&](TypeExpression& here) { return smaller_numbers(here); });
  }

  /// Replaces `here`, a part of best_, by `candidate`, and keeps that if the whole type still fails.
  bool keep(TypeExpression& here, TypeExpression candidate) {
    if (budget_ <= 0) return false;
    std::swap(here, candidate);
    if (facts_of(best_)) {
      --budget_;
      if (fails_(best_)) return true;
    }
    std::swap(here, candidate);
    return false;
  }

  bool smaller_trees(TypeExpression& here) {
    if (here.combiner == Combiner::named) return here.name != "byte" && here.name != "int" && keep(here, named("byte"));
    if (keep(here, named("byte")) || keep(here, named("int"))) return true;
    for (const TypeExpression& child : std::vector<TypeExpression>(here.children))
      if (keep(here, child)) return true;
    return false;
  }

  bool shorter_lists(TypeExpression& here) {
    const std::size_t length = here.a.size();
    const bool two_lists = here.b.size() == length, three_lists = here.c.size() == length;
    const std::size_t at_least = here.combiner == Combiner::subarray || here.combiner == Combiner::darray ? 1 : 0;
    if (here.combiner == Combiner::darray) return false;  // the process grid depends on the lists
    for (std::size_t chunk = length / 2; chunk > 0; chunk /= 2)
      for (std::size_t from = 0; from + chunk <= length && length - chunk >= at_least; from += chunk) {
        TypeExpression candidate = here;
        const auto cut = [&](auto& list) {
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(from),
                     list.begin() + static_cast<std::ptrdiff_t>(from + chunk));
        };
        cut(candidate.a);
        if (two_lists && !candidate.b.empty()) cut(candidate.b);
        if (three_lists && !candidate.c.empty()) cut(candidate.c);
        if (candidate.combiner == Combiner::structure) cut(candidate.children);
        if (keep(here, candidate)) return true;
      }
    return false;
  }

  bool smaller_numbers(TypeExpression& here) {
    for (Numbers TypeExpression::*list :
         {&TypeExpression::integers, &TypeExpression::a, &TypeExpression::b, &TypeExpression::c})
      for (std::size_t i = 0; i < (here.*list).size(); ++i) {
        const std::int64_t value = (here.*list)[i];
        if (value == TypeExpression::default_argument) continue;
        for (const std::int64_t smaller : {std::int64_t{0}, std::int64_t{1}, value / 2, value - (value > 0 ? 1 : -1)}) {
          if (std::abs(smaller) >= std::abs(value)) continue;
          TypeExpression candidate = here;
          (candidate.*list)[i] = smaller;
          if (keep(here, candidate)) return true;
        }
      }
    return false;
  }

  TypeExpression best_;
  const std::function<bool(const TypeExpression&)>& fails_;
  int budget_;
};

}  // namespace

TypeExpression shrink(TypeExpression type, const std::function<bool(const TypeExpression&)>& fails, int budget) {
  return Shrinker(std::move(type), fails, budget).run();
}

}  // namespace bestride::test
