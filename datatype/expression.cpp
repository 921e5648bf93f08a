// SPDX-License-Identifier: Apache-2.0
#include "datatype/expression.hpp"

#include <array>
#include <cctype>

#include "datatype/named.hpp"

namespace bestride {
namespace {

using Combiner = TypeExpression::Combiner;
using Distribution = TypeExpression::Distribution;

/// The arguments of a constructor, one letter for each: n number; a b c list for that member; g list of dargs for b; d
/// distributions; o order; T type; L list of types.
struct Form {
  std::string_view word;
  Combiner combiner;
  std::string_view arguments;
};

constexpr std::array forms = {
    Form{"contiguous", Combiner::contiguous, "nT"},
    Form{"vector", Combiner::vector, "nnnT"},
    Form{"hvector", Combiner::hvector, "nnnT"},
    Form{"indexed", Combiner::indexed, "abT"},
    Form{"hindexed", Combiner::hindexed, "abT"},
    Form{"indexed_block", Combiner::indexed_block, "naT"},
    Form{"hindexed_block", Combiner::hindexed_block, "naT"},
    Form{"struct", Combiner::structure, "abL"},
    Form{"subarray", Combiner::subarray, "abcoT"},
    Form{"darray", Combiner::darray, "nnadgcoT"},
    Form{"resized", Combiner::resized, "nnT"},
    Form{"dup", Combiner::dup, "T"},
};

constexpr std::array<std::string_view, 3> distribution_words = {"none", "block", "cyclic"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Recursive descent with at most one token of look-ahead. The first error ends parsing.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<TypeExpression> run() {
    TypeExpression type;
    if (!parse_type(type, 0)) return Error{error_};
    skip_blanks();
    if (at_ != text_.size() && !expected("the end")) return Error{error_};
    return type;
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool expected(std::string_view what) { return fail(at_, "expected " + std::string(what) + found()); }

  bool fail(std::size_t at, std::string why) {
    if (error_.empty()) error_ = "column " + std::to_string(at + 1) + ": " + std::move(why);
    return false;
  }

  std::string found() const {
    if (at_ >= text_.size()) return ", found the end";
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end]) && end - at_ < 32) ++end;
    return ", found '" + std::string(text_.substr(at_, end == at_ ? 1 : end - at_)) + "'";
  }

  bool symbol(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return expected(std::string("'") + c + "'");
    ++at_;
    return true;
  }

  bool peek(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }

  std::string_view word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool number(std::int64_t& value) {
    skip_blanks();
    const std::size_t begin = at_;
    const bool negative = peek('-');
    if (negative) ++at_;
    if (at_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_])))
      return at_ = begin, expected("a number");
    value = 0;
    bool fits = true;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
             !__builtin_sub_overflow(value, text_[at_] - '0', &value);
    if (at_ < text_.size()) {
      const std::string_view suffixes = "KMG";
      if (const std::size_t power = suffixes.find(text_[at_]); power != suffixes.npos) {
        fits = fits && !__builtin_mul_overflow(value, std::int64_t{1} << (10 * (power + 1)), &value);
        ++at_;
      }
    }
    // Accumulated as a negative number, because the lowest number has no positive counterpart.
    if (!negative) fits = fits && !__builtin_sub_overflow(std::int64_t{0}, value, &value);
    if (!fits || value == TypeExpression::default_argument) return fail(begin, "number does not fit 64 bits");
    if (at_ < text_.size() && is_word(text_[at_])) return expected("K, M, G or the end of the number");
    return true;
  }

  template <class Value, class One>
  bool list(std::vector<Value>& values, One&& one) {
    if (!symbol('[')) return false;
    if (peek(']')) return symbol(']');
    do {
      if (!one(values.emplace_back())) return false;
      if (peek(']')) return symbol(']');
    } while (peek(',') ? symbol(',') : expected("',' or ']'"));
    return false;
  }

  bool numbers(std::vector<std::int64_t>& values, bool with_default) {
    return list(values, [&](std::int64_t& value) {
      if (with_default && peek('d')) {
        value = TypeExpression::default_argument;
        return keyword(std::array<std::string_view, 1>{"dflt"}, "'dflt' or a number") >= 0;
      }
      return number(value);
    });
  }

  /// Index of the word that was read; -1 after an error.
  template <std::size_t N>
  int keyword(const std::array<std::string_view, N>& words, std::string_view what) {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string_view read = word();
    for (std::size_t i = 0; i < N; ++i)
      if (words[i] == read) return static_cast<int>(i);
    at_ = begin;
    expected(what);
    return -1;
  }

  bool distributions(std::vector<Distribution>& values) {
    return list(values, [&](Distribution& value) {
      const int index = keyword(distribution_words, "'block', 'cyclic' or 'none'");
      value = static_cast<Distribution>(index);
      return index >= 0;
    });
  }

  bool order(bool& fortran) {
    const int index = keyword(std::array<std::string_view, 2>{"c", "fortran"}, "'c' or 'fortran'");
    fortran = index == 1;
    return index >= 0;
  }

  bool argument(char kind, TypeExpression& type, int depth) {
    switch (kind) {
      case 'n': return number(type.integers.emplace_back());
      case 'a': return numbers(type.a, false);
      case 'b': return numbers(type.b, false);
      case 'c': return numbers(type.c, false);
      case 'g': return numbers(type.b, true);
      case 'd': return distributions(type.distributions);
      case 'o': return order(type.fortran_order);
      case 'T': return parse_type(type.children.emplace_back(), depth + 1);
      default: return list(type.children, [&](TypeExpression& child) { return parse_type(child, depth + 1); });
    }
  }

  bool parse_type(TypeExpression& type, int depth) {
    skip_blanks();
    const std::size_t begin = at_;
    if (depth >= TypeExpression::max_depth) return fail(begin, "types nested too deeply");
    const std::string_view read = word();
    for (const Form& form : forms) {
      if (form.word != read) continue;
      type.combiner = form.combiner;
      if (!symbol('(')) return false;
      for (std::size_t i = 0; i < form.arguments.size(); ++i)
        if ((i > 0 && !symbol(',')) || !argument(form.arguments[i], type, depth)) return false;
      return symbol(')');
    }
    type.name = read;
    if (find_named_type(read) != nullptr) return true;
    at_ = begin;
    return expected("a type");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

void write_number(std::string& out, std::int64_t value) {
  if (value == TypeExpression::default_argument)
    out += "dflt";
  else
    out += std::to_string(value);
}

template <class Values, class One>
void write_list(std::string& out, const Values& values, One&& one) {
  out += '[';
  bool first = true;
  for (const auto& value : values) {
    if (!first) out += ',';
    first = false;
    one(value);
  }
  out += ']';
}

void write(std::string& out, const TypeExpression& type) {
  if (type.combiner == Combiner::named) {
    out += type.name;
    return;
  }
  const auto numbers = [&](const std::vector<std::int64_t>& values) {
    write_list(out, values, [&](std::int64_t value) { write_number(out, value); });
  };
  for (const Form& form : forms) {
    if (form.combiner != type.combiner) continue;
    out += form.word;
    std::size_t integer = 0;
    char separator = '(';
    for (const char kind : form.arguments) {
      out += separator;
      separator = ',';
      switch (kind) {
        case 'n': write_number(out, type.integers[integer++]); break;
        case 'a': numbers(type.a); break;
        case 'b':
        case 'g': numbers(type.b); break;
        case 'c': numbers(type.c); break;
        case 'd':
          write_list(out, type.distributions,
                     [&](Distribution value) { out += distribution_words[static_cast<int>(value)]; });
          break;
        case 'o': out += type.fortran_order ? "fortran" : "c"; break;
        case 'T': write(out, type.children[0]); break;
        default: write_list(out, type.children, [&](const TypeExpression& child) { write(out, child); });
      }
    }
    out += ')';
    return;
  }
}

}  // namespace

std::string TypeExpression::text() const {
  std::string out;
  write(out, *this);
  return out;
}

Result<TypeExpression> parse_type(std::string_view text) { return Parser(text).run(); }

}  // namespace bestride
