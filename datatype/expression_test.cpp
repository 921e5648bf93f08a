// SPDX-License-Identifier: Apache-2.0
#include "datatype/expression.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <random>

#include "datatype/named.hpp"

namespace bestride::inline datatype {
namespace {

using Combiner = TypeExpression::Combiner;

std::string error_of(std::string_view text) {
  const auto parsed = parse_type(text);
  return parsed ? "no error" : parsed.error().text;
}

TEST(Parse, RoundTripOfEveryConstructor) {
  for (const char* text : {
           "byte",
           "2int",
           "contiguous(3,double)",
           "vector(1000,1,-2,double)",
           "hvector(2,3,4096,short_int)",
           "indexed([1,0,3],[-4,0,7],int)",
           "indexed([],[],int)",
           "hindexed([1,2],[0,64],char)",
           "indexed_block(3,[0,9,5],float)",
           "hindexed_block(0,[8],float)",
           "struct([1,2],[0,16],[int,contiguous(2,double)])",
           "struct([],[],[])",
           "subarray([4,5],[2,2],[1,0],fortran,int)",
           "darray(4,3,[7,5],[cyclic,block],[2,dflt],[2,2],c,int)",
           "darray(1,0,[7],[none],[dflt],[1],fortran,int)",
           "resized(-8,32,dup(int))",
           "hvector(2,1,-9223372036854775807,byte)",
       }) {
    const auto parsed = parse_type(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().text;
    EXPECT_EQ(parsed->text(), text);
  }
}

TEST(Parse, BlanksAndSuffixes) {
  const auto parsed = parse_type("  vector ( 4K , 1 ,\t-2M,double )\n");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed->integers, (std::vector<std::int64_t>{4096, 1, -2 * 1024 * 1024}));
  EXPECT_EQ(parse_type("hvector(1,1,7G,int)")->integers[2], std::int64_t{7} << 30);
}

TEST(Parse, Exponents) {
  EXPECT_EQ(*parse_number("1e6"), 1000000);
  EXPECT_EQ(*parse_number(" -25e1 "), -250);
  EXPECT_EQ(*parse_number("0e30"), 0);
  EXPECT_EQ(*parse_number("64K"), 65536);
  for (const char* text : {"1e", "1e6x", "1e19", "e6", "1 2", ""}) EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Parse, CallsOfMpiConstructors) {
  const std::pair<const char*, const char*> same[] = {
      {"MPI_DOUBLE", "double"},
      {"MPI_INT64_T", "int64"},
      {"MPI_2INT", "2int"},
      {"MPI_LONG_LONG_INT", "long_long"},
      {"MPI_UNSIGNED_CHAR", "unsigned_char"},
      {"MPI_C_DOUBLE_COMPLEX", "double_complex"},
      {"MPI_Type_contiguous(3, MPI_INT, &row)", "contiguous(3,int)"},
      {"MPI_Type_vector(1000, 1, 2, MPI_DOUBLE)", "vector(1000,1,2,double)"},
      {"MPI_Type_create_hvector(2,3,64,MPI_Type_dup(MPI_INT, &a),&b)", "hvector(2,3,64,dup(int))"},
      {"MPI_Type_indexed(2,{1,2},{0,4},MPI_INT)", "indexed([1,2],[0,4],int)"},
      {"MPI_Type_create_indexed_block(2,3,[0,9],MPI_INT)", "indexed_block(3,[0,9],int)"},
      {"MPI_Type_create_resized(MPI_INT, 0, 8)", "resized(0,8,int)"},
      {"MPI_Type_create_struct(2,{1,1},{0,8},{MPI_Type_indexed(1,{1},{0},MPI_INT),MPI_DOUBLE})",
       "struct([1,1],[0,8],[indexed([1],[0],int),double])"},
      {"MPI_Type_create_subarray(2,{4,5},{2,2},{1,0},MPI_ORDER_FORTRAN,MPI_INT,&t)",
       "subarray([4,5],[2,2],[1,0],fortran,int)"},
      {"MPI_Type_create_darray(4,3,2,{7,5},{MPI_DISTRIBUTE_CYCLIC,MPI_DISTRIBUTE_BLOCK},{2,MPI_DISTRIBUTE_DFLT_DARG},"
       "{2,2},MPI_ORDER_C,MPI_INT)",
       "darray(4,3,[7,5],[cyclic,block],[2,dflt],[2,2],c,int)"},
  };
  for (const auto& [mpi, ours] : same) {
    const auto parsed = parse_type(mpi);
    ASSERT_TRUE(parsed) << mpi << ": " << parsed.error().text;
    EXPECT_EQ(parsed->text(), ours);
  }
  EXPECT_EQ(error_of("MPI_Type_indexed(2,{1,2},{0},MPI_INT)"), "column 29: the list has 1 entries, not 2");
  EXPECT_EQ(error_of("MPI_Type_create_struct(2,{1,1},{0,8},{MPI_INT})"), "column 47: the list has 1 entries, not 2");
  EXPECT_EQ(error_of("MPI_DOUBEL"), "column 1: expected a type, found 'MPI_DOUBEL'");
  EXPECT_EQ(error_of("MPI_Type_dup(MPI_INT, &)"), "column 24: expected '&' and the name of the new type, found ')'");
}

/// Evaluating the text of a layout gives a layout with the same text.
TEST(Parse, LayoutsAsInReports) {
  for (const char* text : {
           "8 B",
           "1000 x 16 | 8 B",
           "+64 | 16 x 16384 | 32 x 256 | 8 B",
           "-64 | 4 x 32 | 8 B",
           "{ 8 B, +32 4 B }",
           "2 x 4096 | { 3 x 16 | 8 B, +100 4 B, +1000 2 x 16 | 4 B }",
       }) {
    const auto parsed = parse_type(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().text;
    const auto evaluated = evaluate(*parsed);
    ASSERT_TRUE(evaluated) << text;
    EXPECT_EQ(intern(evaluated->bytes)->text(), text);
  }
  EXPECT_EQ(error_of("4 blocks of 8 B in [0, 100)"),
            "column 3: a list of blocks does not tell their offsets; give the datatype");
  EXPECT_EQ(error_of("16 x | 8 B"), "column 6: expected a number, found '|'");
}

TEST(Parse, ErrorsNameColumnAndExpectation) {
  EXPECT_EQ(error_of(""), "column 1: expected a type, found the end");
  EXPECT_EQ(error_of("doubel"), "column 1: expected a type, found 'doubel'");
  EXPECT_EQ(error_of("vector(3,1,2"), "column 13: expected ',', found the end");
  EXPECT_EQ(error_of("vector(3,1,double)"), "column 12: expected a number, found 'double'");
  EXPECT_EQ(error_of("vector(3,1,2,double))"), "column 21: expected the end, found ')'");
  EXPECT_EQ(error_of("contiguous 3"), "column 12: expected '(', found '3'");
  EXPECT_EQ(error_of("contiguous(3x,int)"),
            "column 13: expected K, M, G, an exponent or the end of the number, found 'x'");
  EXPECT_EQ(error_of("indexed([1 2],[0],int)"), "column 12: expected ',' or ']', found '2'");
  EXPECT_EQ(error_of("subarray([4],[1],[0],C,int)"), "column 22: expected 'c' or 'fortran', found 'C'");
  EXPECT_EQ(error_of("darray(1,0,[4],[blok],[1],[1],c,int)"),
            "column 17: expected 'block', 'cyclic' or 'none', found 'blok'");
  EXPECT_EQ(error_of("darray(1,0,[4],[block],[def],[1],c,int)"), "column 25: expected 'dflt' or a number, found 'def'");
}

TEST(Parse, RejectsNumbersOutOfRange) {
  EXPECT_EQ(error_of("contiguous(9223372036854775808,int)"), "column 12: number does not fit 64 bits");
  EXPECT_EQ(error_of("contiguous(-9223372036854775808,int)"), "column 12: number does not fit 64 bits");
  EXPECT_EQ(error_of("contiguous(9007199254740992K,int)"), "column 12: number does not fit 64 bits");
  EXPECT_EQ(parse_type("contiguous(9223372036854775807,int)")->integers[0], INT64_MAX);
}

TEST(Parse, DepthIsLimited) {
  const auto nest = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "dup(";
    return text + "int" + std::string(static_cast<std::size_t>(depth), ')');
  };
  EXPECT_TRUE(parse_type(nest(TypeExpression::max_depth - 1)));
  EXPECT_NE(error_of(nest(TypeExpression::max_depth)).find("nested too deeply"), std::string::npos);
  EXPECT_NE(error_of(nest(100000)).find("nested too deeply"), std::string::npos);
}

/// Trees that need not be valid types: only the language is tested.
TypeExpression random_tree(std::mt19937_64& random, int depth) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto number = [&] { return static_cast<std::int64_t>(random()) >> below(64); };
  const auto numbers = [&] {
    std::vector<std::int64_t> values(below(4));
    for (auto& value : values) do
        value = number();
      while (value == TypeExpression::default_argument);
    return values;
  };
  TypeExpression type;
  type.combiner = depth == 0 ? Combiner::named : static_cast<Combiner>(below(13));
  const auto integers = [&](int n) {
    while (n-- > 0) type.integers.push_back(number() | 1);
  };
  switch (type.combiner) {
    case Combiner::named: type.name = named_types()[below(named_types().size())].name; return type;
    case Combiner::contiguous: integers(1); break;
    case Combiner::vector:
    case Combiner::hvector: integers(3); break;
    case Combiner::resized: integers(2); break;
    case Combiner::indexed:
    case Combiner::hindexed:
      type.a = numbers();
      type.b = numbers();
      break;
    case Combiner::indexed_block:
    case Combiner::hindexed_block:
      integers(1);
      type.a = numbers();
      break;
    case Combiner::structure:
      type.a = numbers();
      type.b = numbers();
      for (auto n = below(4); n > 0; --n) type.children.push_back(random_tree(random, depth - 1));
      return type;
    case Combiner::darray:
      integers(2);
      for (auto n = below(4); n > 0; --n)
        type.distributions.push_back(static_cast<TypeExpression::Distribution>(below(3)));
      [[fallthrough]];
    case Combiner::subarray:
      type.a = numbers();
      type.b = numbers();
      type.c = numbers();
      type.fortran_order = below(2) == 1;
      if (type.combiner == Combiner::darray) type.b.push_back(TypeExpression::default_argument);
      break;
    case Combiner::dup: break;
  }
  type.children.push_back(random_tree(random, depth - 1));
  return type;
}

TEST(Parse, RoundTripOfRandomTrees) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const TypeExpression tree = random_tree(random, 5);
    const auto parsed = parse_type(tree.text());
    ASSERT_TRUE(parsed) << tree.text() << ": " << parsed.error().text;
    ASSERT_EQ(*parsed, tree) << tree.text();
  }
}

/// All lists of MPI's constructors have as many entries as their count says.
void make_lists_equal(TypeExpression& type) {
  const std::size_t entries = type.combiner == Combiner::structure ? type.children.size() : type.a.size();
  for (auto* const list : {&type.b, &type.c})
    if (!list->empty() || type.combiner == Combiner::subarray || type.combiner == Combiner::darray)
      list->resize(entries, 3);
  if (type.combiner == Combiner::structure || type.combiner == Combiner::indexed ||
      type.combiner == Combiner::hindexed) {
    type.a.resize(entries, 2);
    type.b.resize(entries, 1);
  }
  if (type.combiner == Combiner::darray) type.distributions.resize(entries);
  for (TypeExpression& child : type.children) make_lists_equal(child);
}

std::string mpi_name(std::string name) {
  const bool fixed_size = name.starts_with("int") || name.starts_with("uint");
  if (name == "bool" || name == "complex") name = "c_" + name;
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "MPI_" + name + (fixed_size && name != "INT" ? "_T" : "");
}

/// The call that makes the type, as the MPI standard declares it, with the new type at the end.
std::string mpi_text(const TypeExpression& type) {
  if (type.combiner == Combiner::named) return mpi_name(type.name);
  const auto joined = [](const auto& values, auto&& text) {
    std::string all;
    for (const auto& value : values) all += (all.empty() ? "" : ", ") + text(value);
    return all;
  };
  const auto number = [](std::int64_t value) {
    return value == TypeExpression::default_argument ? "MPI_DISTRIBUTE_DFLT_DARG" : std::to_string(value);
  };
  const auto list = [&](const std::vector<std::int64_t>& values) { return "{" + joined(values, number) + "}"; };
  const auto old = [&] { return ", " + mpi_text(type.children[0]); };
  const std::string count = std::to_string(type.combiner == Combiner::structure ? type.children.size() : type.a.size());
  const std::string integers = joined(type.integers, number), order = type.fortran_order ? "FORTRAN" : "C";
  const auto call = [](const std::string& name, const std::string& arguments) {
    return "MPI_Type_" + name + "(" + arguments + ", &type)";
  };
  switch (type.combiner) {
    case Combiner::contiguous: return call("contiguous", integers + old());
    case Combiner::vector: return call("vector", integers + old());
    case Combiner::hvector: return call("create_hvector", integers + old());
    case Combiner::indexed: return call("indexed", count + ", " + list(type.a) + ", " + list(type.b) + old());
    case Combiner::hindexed: return call("create_hindexed", count + ", " + list(type.a) + ", " + list(type.b) + old());
    case Combiner::indexed_block:
      return call("create_indexed_block", count + ", " + integers + ", " + list(type.a) + old());
    case Combiner::hindexed_block:
      return call("create_hindexed_block", count + ", " + integers + ", " + list(type.a) + old());
    case Combiner::structure:
      return call("create_struct",
                  count + ", " + list(type.a) + ", " + list(type.b) + ", {" + joined(type.children, mpi_text) + "}");
    case Combiner::subarray:
      return call("create_subarray", count + ", " + list(type.a) + ", " + list(type.b) + ", " + list(type.c) +
                                         ", MPI_ORDER_" + order + old());
    case Combiner::darray: {
      const std::string names[] = {"NONE", "BLOCK", "CYCLIC"};
      const auto distribution = [&](TypeExpression::Distribution value) {
        return "MPI_DISTRIBUTE_" + names[static_cast<int>(value)];
      };
      return call("create_darray", integers + ", " + count + ", " + list(type.a) + ", {" +
                                       joined(type.distributions, distribution) + "}, " + list(type.b) + ", " +
                                       list(type.c) + ", MPI_ORDER_" + order + old());
    }
    case Combiner::resized: return call("create_resized", mpi_text(type.children[0]) + ", " + integers);
    case Combiner::dup: return call("dup", mpi_text(type.children[0]));
    case Combiner::named: break;
  }
  return "";
}

/// Every constructor in both spellings is the same tree.
TEST(Parse, RoundTripOfRandomTreesAsMpiCalls) {
  std::mt19937_64 random(17);
  for (int i = 0; i < 20000; ++i) {
    TypeExpression tree = random_tree(random, 4);
    make_lists_equal(tree);
    const std::string text = mpi_text(tree);
    const auto parsed = parse_type(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().text;
    ASSERT_EQ(*parsed, tree) << text;
  }
}

/// What C or Fortran would read otherwise is refused.
TEST(Parse, RefusesWhatIsNotANumberOrATypeHere) {
  EXPECT_EQ(error_of("MPI_Type_vector(n,1,2,MPI_DOUBLE)"), "column 17: expected a number, found 'n'");
  EXPECT_EQ(error_of("MPI_Type_vector(10, BLOCK, 2, MPI_DOUBLE)"), "column 21: expected a number, found 'BLOCK'");
  EXPECT_EQ(error_of("MPI_Type_vector(10,1,2*8,MPI_DOUBLE)"), "column 23: expected ',', found '*'");
  EXPECT_EQ(error_of("MPI_Type_create_hvector(10,1,2*sizeof(int),MPI_INT)"), "column 31: expected ',', found '*'");
  EXPECT_EQ(error_of("MPI_Type_vector(10,1,010,MPI_DOUBLE)"), "column 22: a number that begins with 0 is octal in C");
  EXPECT_EQ(error_of("MPI_Type_vector(10,1,0x10,MPI_DOUBLE)"),
            "column 23: expected K, M, G, an exponent or the end of the number, found 'x10'");
  EXPECT_EQ(error_of("MPI_Type_vector(10,1,2.5,MPI_DOUBLE)"), "column 23: expected ',', found '.'");
  EXPECT_EQ(error_of("MPI_TYPE_VECTOR(10,1,2,MPI_REAL8,t,e)"), "column 1: expected a type, found 'MPI_TYPE_VECTOR'");
  EXPECT_EQ(error_of("MPI_Type_vector(10,1,MPI_DOUBLE)"), "column 22: expected a number, found 'MPI_DOUBLE'");
  EXPECT_EQ(error_of("MPI_Type_vector(10,1,2,3,MPI_DOUBLE)"), "column 24: expected a type, found '3'");
  EXPECT_EQ(error_of("MPI_Type_vector(10,1,2,MPI_LB)"), "column 24: expected a type, found 'MPI_LB'");
}

TEST(Parse, DamagedTextFails) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string text = random_tree(random, 4).text();
    for (int damage = 0; damage < 2; ++damage) text[random() % text.size()] = "()[],-0K d"[random() % 10];
    const auto parsed = parse_type(text);
    if (parsed) continue;
    EXPECT_EQ(parsed.error().text.rfind("column ", 0), 0u) << text;
  }
}

TEST(Named, SizesFollowTheCompiler) {
  struct DoubleInt {
    double a;
    int b;
  };
  const NamedType* type = find_named_type("double_int");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->size, 12);
  EXPECT_EQ(type->extent, static_cast<std::int64_t>(sizeof(DoubleInt)));
  EXPECT_EQ(type->second_at, static_cast<std::int64_t>(offsetof(DoubleInt, b)));
  EXPECT_EQ(find_named_type("short_int")->second_at, 4);
  EXPECT_EQ(find_named_type("double")->second_at, 0);
  EXPECT_EQ(find_named_type("MPI_DOUBLE"), nullptr);
}

}  // namespace
}  // namespace bestride::inline datatype
