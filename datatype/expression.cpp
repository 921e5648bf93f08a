// SPDX-License-Identifier: Apache-2.0
#include "datatype/expression.hpp"

#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "datatype/named.hpp"

namespace bestride::inline datatype {
namespace {

using Combiner = TypeExpression::Combiner;
using Distribution = TypeExpression::Distribution;

/// The arguments of a constructor, one letter each: n number; m number of entries of every list (only in MPI's calls);
/// a, b, c list, stored in that member; g list of dargs, stored in b; d distributions; o order; T type; L list of
/// types.
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

/// MPI's constructors, with their arguments in MPI's order.
constexpr std::array mpi_forms = {
    Form{"MPI_Type_contiguous", Combiner::contiguous, "nT"},
    Form{"MPI_Type_vector", Combiner::vector, "nnnT"},
    Form{"MPI_Type_create_hvector", Combiner::hvector, "nnnT"},
    Form{"MPI_Type_indexed", Combiner::indexed, "mabT"},
    Form{"MPI_Type_create_hindexed", Combiner::hindexed, "mabT"},
    Form{"MPI_Type_create_indexed_block", Combiner::indexed_block, "mnaT"},
    Form{"MPI_Type_create_hindexed_block", Combiner::hindexed_block, "mnaT"},
    Form{"MPI_Type_create_struct", Combiner::structure, "mabL"},
    Form{"MPI_Type_create_subarray", Combiner::subarray, "mabcoT"},
    Form{"MPI_Type_create_darray", Combiner::darray, "nnmadgcoT"},
    Form{"MPI_Type_create_resized", Combiner::resized, "Tnn"},
    Form{"MPI_Type_dup", Combiner::dup, "T"},
};

/// "double" for "MPI_DOUBLE", "long_long" for "MPI_LONG_LONG_INT", "double" for "MPI_DOUBLE_PRECISION", ...; other
/// names unchanged.
std::string named_type_of(std::string_view name) {
  if (!name.starts_with("MPI_")) return std::string(name);
  std::string word(name.substr(4));
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word.ends_with("_t")) word.resize(word.size() - 2);
  constexpr std::array<std::array<std::string_view, 2>, 10> others = {{{"long_long_int", "long_long"},
                                                                       {"c_bool", "bool"},
                                                                       {"c_complex", "complex"},
                                                                       {"c_float_complex", "complex"},
                                                                       {"c_double_complex", "double_complex"},
                                                                       {"c_long_double_complex", "long_double_complex"},
                                                                       {"double_precision", "double"},
                                                                       {"integer", "int"},
                                                                       {"real", "float"},
                                                                       {"character", "char"}}};
  for (const auto& [other, known] : others)
    if (word == other) return std::string(known);
  return word;
}

constexpr std::array<std::string_view, 3> distribution_words = {"none", "block", "cyclic"};
constexpr std::array<std::string_view, 3> mpi_distribution_words = {"MPI_DISTRIBUTE_NONE", "MPI_DISTRIBUTE_BLOCK",
                                                                    "MPI_DISTRIBUTE_CYCLIC"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Recursive descent with at most one token of look-ahead. The first error ends parsing.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<TypeExpression> run() {
    TypeExpression type;
    // Only a layout has sizes in bytes, written "8 B"; only a type has parentheses.
    const bool layout = text_.find(" B") != text_.npos && text_.find('(') == text_.npos;
    if (!(layout ? parse_layout(type, 0) : parse_type(type, 0))) return Error{error_};
    skip_blanks();
    if (at_ != text_.size() && !expected("the end")) return Error{error_};
    return type;
  }

  Result<std::int64_t> run_number() {
    std::int64_t value = 0;
    if (!number(value)) return Error{error_};
    skip_blanks();
    if (at_ != text_.size() && !expected("the end")) return Error{error_};
    return value;
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
    if (text_[at_] == '0' && at_ + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])))
      return fail(begin, "a number that begins with 0 is octal in C");
    value = 0;
    bool fits = true;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_)
      fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
             !__builtin_sub_overflow(value, text_[at_] - '0', &value);
    if (at_ < text_.size() && text_[at_] == 'e') {
      if (++at_ >= text_.size() || !std::isdigit(static_cast<unsigned char>(text_[at_])))
        return expected("an exponent");
      int power = 0;
      for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) && power < 100; ++at_)
        power = power * 10 + (text_[at_] - '0');
      while (power-- > 0 && fits) fits = !__builtin_mul_overflow(value, 10, &value);
    } else if (at_ < text_.size()) {
      const std::string_view suffixes = "KMG";
      if (const std::size_t power = suffixes.find(text_[at_]); power != suffixes.npos) {
        fits = fits && !__builtin_mul_overflow(value, std::int64_t{1} << (10 * (power + 1)), &value);
        ++at_;
      }
    }
    // Accumulated as a negative number, because the lowest number has no positive counterpart.
    if (!negative) fits = fits && !__builtin_sub_overflow(std::int64_t{0}, value, &value);
    if (!fits || value == TypeExpression::default_argument) return fail(begin, "number does not fit 64 bits");
    if (at_ < text_.size() && is_word(text_[at_])) return expected("K, M, G, an exponent or the end of the number");
    return true;
  }

  template <class Value, class One>
  bool list(std::vector<Value>& values, One&& one) {
    const char end = peek('{') ? '}' : ']';
    if (!symbol(end == '}' ? '{' : '[')) return false;
    if (peek(end)) return symbol(end);
    do {
      if (!one(values.emplace_back())) return false;
      if (peek(end)) return symbol(end);
    } while (peek(',') ? symbol(',') : expected(std::string("',' or '") + end + "'"));
    return false;
  }

  bool numbers(std::vector<std::int64_t>& values, bool with_default) {
    return list(values, [&](std::int64_t& value) {
      if (with_default && peek('d')) {
        value = TypeExpression::default_argument;
        return keyword(std::array<std::string_view, 1>{"dflt"}, "'dflt' or a number") >= 0;
      }
      if (with_default && peek('M')) {
        value = TypeExpression::default_argument;
        return keyword(std::array<std::string_view, 1>{"MPI_DISTRIBUTE_DFLT_DARG"}, "a number") >= 0;
      }
      return number(value);
    });
  }

  /// Reads a word and returns its index in `words`; -1 after an error.
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
      const int index = peek('M') ? keyword(mpi_distribution_words, "a distribution")
                                  : keyword(distribution_words, "'block', 'cyclic' or 'none'");
      value = static_cast<Distribution>(index);
      return index >= 0;
    });
  }

  bool order(bool& fortran) {
    const int index = peek('M')
                          ? keyword(std::array<std::string_view, 2>{"MPI_ORDER_C", "MPI_ORDER_FORTRAN"}, "an order")
                          : keyword(std::array<std::string_view, 2>{"c", "fortran"}, "'c' or 'fortran'");
    fortran = index == 1;
    return index >= 0;
  }

  /// Checks the number of entries of the list that was just read.
  bool has_entries(std::size_t read, const std::optional<std::int64_t>& wanted) {
    return !wanted || *wanted == static_cast<std::int64_t>(read) ||
           fail(at_, "the list has " + std::to_string(read) + " entries, not " + std::to_string(*wanted));
  }

  bool argument(char kind, TypeExpression& type, int depth) {
    switch (kind) {
      case 'm': return number(entries_.emplace());
      case 'n': return number(type.integers.emplace_back());
      case 'a': return numbers(type.a, false) && has_entries(type.a.size(), entries_);
      case 'b': return numbers(type.b, false) && has_entries(type.b.size(), entries_);
      case 'c': return numbers(type.c, false) && has_entries(type.c.size(), entries_);
      case 'g': return numbers(type.b, true) && has_entries(type.b.size(), entries_);
      case 'd': return distributions(type.distributions) && has_entries(type.distributions.size(), entries_);
      case 'o': return order(type.fortran_order);
      // Types are the last arguments; a nested constructor sets entries_ itself.
      case 'T': entries_.reset(); return parse_type(type.children.emplace_back(), depth + 1);
      default: {
        const auto entries = std::exchange(entries_, {});
        return list(type.children, [&](TypeExpression& child) { return parse_type(child, depth + 1); }) &&
               has_entries(type.children.size(), entries);
      }
    }
  }

  bool parse_type(TypeExpression& type, int depth) {
    skip_blanks();
    const std::size_t begin = at_;
    if (depth >= TypeExpression::max_depth) return fail(begin, "types nested too deeply");
    const std::string_view read = word();
    for (const Form& form : forms)
      if (form.word == read) return constructor(form, type, depth) && symbol(')');
    for (const Form& form : mpi_forms)
      if (form.word == read) return mpi_constructor(form, type, depth);
    type.name = named_type_of(read);
    if (find_named_type(type.name) != nullptr) return true;
    at_ = begin;
    return expected("a type");
  }

  /// A constructor's arguments without the closing parenthesis.
  bool constructor(const Form& form, TypeExpression& type, int depth) {
    type.combiner = form.combiner;
    if (!symbol('(')) return false;
    for (std::size_t i = 0; i < form.arguments.size(); ++i)
      if ((i > 0 && !symbol(',')) || !argument(form.arguments[i], type, depth)) return false;
    return true;
  }

  /// As constructor(), with ", &newtype" at the end or without it.
  bool mpi_constructor(const Form& form, TypeExpression& type, int depth) {
    if (!constructor(form, type, depth)) return false;
    if (peek(',')) {
      if (!symbol(',')) return false;
      if (peek('&')) ++at_;
      if (word().empty()) return expected("'&' and the name of the new type");
    }
    return symbol(')');
  }

  /// A layout as Layout::text() writes it: "+64 | 16 x 8192 | { 8 B, +32 4 B }".
  bool parse_layout(TypeExpression& type, int depth) {
    skip_blanks();
    if (depth >= TypeExpression::max_depth) return fail(at_, "a layout nested too deeply");
    if (peek('{')) return layout_sequence(type, depth);
    const bool positive = peek('+');
    const bool offset = positive || peek('-');
    if (positive) ++at_;
    std::int64_t value = 0;
    if (!number(value)) return false;
    if (offset) return symbol('|') && layout_at(type, value, depth);
    if (peek('B')) {
      type.combiner = Combiner::contiguous;
      type.integers = {value};
      type.children.emplace_back().name = "byte";
      return symbol('B');
    }
    if (peek('b')) return fail(at_, "a list of blocks does not tell their offsets; give the datatype");
    type.combiner = Combiner::hvector;
    type.integers = {value, 1};
    return symbol('x') && number(type.integers.emplace_back()) && symbol('|') &&
           parse_layout(type.children.emplace_back(), depth + 1);
  }

  bool layout_at(TypeExpression& type, std::int64_t offset, int depth) {
    type.combiner = Combiner::hindexed;
    type.a = {1};
    type.b = {offset};
    return parse_layout(type.children.emplace_back(), depth + 1);
  }

  bool layout_sequence(TypeExpression& type, int depth) {
    type.combiner = Combiner::structure;
    if (!symbol('{')) return false;
    do {
      std::int64_t offset = 0;
      if (peek('+')) ++at_;
      const std::size_t begin = at_;
      // An item at offset 0 has no offset: its first number is a loop's count or a block's bytes.
      if (!peek('{') && (!number(offset) || peek('x') || peek('B') || peek('b'))) at_ = begin, offset = 0;
      type.a.push_back(1);
      type.b.push_back(offset);
      if (!parse_layout(type.children.emplace_back(), depth + 1)) return false;
    } while (peek(',') && symbol(','));
    return symbol('}');
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<std::int64_t> entries_;  ///< required in each list of this MPI constructor
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

Result<std::int64_t> parse_number(std::string_view text) { return Parser(text).run_number(); }

}  // namespace bestride::inline datatype
