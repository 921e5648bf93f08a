// SPDX-License-Identifier: Apache-2.0
// Creation and freeing of datatypes and operations.
#include "interpose/calls/entry.hpp"
#include "interpose/engine/engine.hpp"
#include "interpose/mpi/nested_calls.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// A derived type that the application may use in communication from now on.
void committed(MPI_Datatype type, const Registration& registration) noexcept {
  runtime().types.insert(type, registration.context());
  runtime().spelled.leave_room_for(type);
}

template <Calls& via>
int type_commit(MPI_Datatype* type) {
  const Registration registration;
  const int error = via.Type_commit(type);
  if (error == MPI_SUCCESS && !runtime().ended() && !predefined(*type)) committed(*type, registration);
  return error;
}

/// A duplicate of a committed type is committed.
template <Calls& via>
int type_dup(MPI_Datatype type, MPI_Datatype* copy) {
  const Registration registration;
  const int error = via.Type_dup(type, copy);
  if (error == MPI_SUCCESS && !runtime().ended() && runtime().types.committed(type)) committed(*copy, registration);
  return error;
}

thread_local constinit const MPI_Datatype* type_being_freed __attribute__((tls_model("initial-exec"))) = nullptr;

template <Calls& via>
int type_free(MPI_Datatype* type) {
  if (!type || runtime().ended()) return via.Type_free(type);
  TypeRegistry& types = runtime().types;
  void* context = nullptr;
  if (const MPI_Datatype freed = *type; types.release_unused(freed, &context)) {
    int error = MPI_ERR_OTHER;
    try {
      error = via.Type_free(type);
    } catch (...) {  // as below
      types.unused_not_freed(freed, context);
      throw;
    }
    if (error != MPI_SUCCESS) types.unused_not_freed(freed, context);
    return error;
  }
  if (nested_free<via>(type_being_freed, type)) return via.Type_free(type);
  const ObjectBeingFreed freeing(type_being_freed, *type);
  const TypeRegistry::Released released = types.release(*type);
  int error = MPI_ERR_OTHER;
  try {
    error = via.Type_free(type);
  } catch (...) {  // thrown by a callback or an error handler of the application
    types.not_freed(released);
    throw;
  }
  error == MPI_SUCCESS ? types.freed(released) : types.not_freed(released);
  return error;
}

/// Each handle in a type's contents is one more handle that the application owns.
void count_contents(std::int64_t types, const MPI_Datatype* contents) noexcept {
  for (std::int64_t i = 0; i < types && !runtime().ended(); ++i) runtime().types.add_handle(contents[i]);
}
template <Calls& via>
int type_get_contents(MPI_Datatype type, int max_integers, int max_addresses, int max_types, int* integers,
                      MPI_Aint* addresses, MPI_Datatype* types) {
  const bool is_counted = !nested<via>();
  const int error =
      inside(via.Type_get_contents, type, max_integers, max_addresses, max_types, integers, addresses, types);
  int integer_count = 0, address_count = 0, type_count = 0, combiner = 0;
  if (is_counted && error == MPI_SUCCESS &&
      real.Type_get_envelope(type, &integer_count, &address_count, &type_count, &combiner) == MPI_SUCCESS)
    count_contents(type_count, types);
  return error;
}
#ifdef BESTRIDE_DECLARES_Type_get_contents_c
template <Calls& via>
int type_get_contents_c(MPI_Datatype type, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_counts,
                        MPI_Count max_types, int* integers, MPI_Aint* addresses, MPI_Count* counts,
                        MPI_Datatype* types) {
  const bool is_counted = !nested<via>();
  const int error = inside(via.Type_get_contents_c, type, max_integers, max_addresses, max_counts, max_types, integers,
                           addresses, counts, types);
  MPI_Count integer_count = 0, address_count = 0, count_count = 0, type_count = 0;
  int combiner = 0;
  if (is_counted && error == MPI_SUCCESS &&
      datatype_calls.get_envelope_c(type, &integer_count, &address_count, &count_count, &type_count, &combiner) ==
          MPI_SUCCESS)
    count_contents(type_count, types);
  return error;
}
#endif

/// These types need no commit and can't be freed.
int never_freed(int error, const MPI_Datatype* type) noexcept {
  if (error == MPI_SUCCESS && !runtime().ended()) runtime().types.insert_permanent(*type);
  return error;
}
template <Calls& via>
int type_create_f90_real(int precision, int range, MPI_Datatype* type) {
  return never_freed(via.Type_create_f90_real(precision, range, type), type);
}
template <Calls& via>
int type_create_f90_complex(int precision, int range, MPI_Datatype* type) {
  return never_freed(via.Type_create_f90_complex(precision, range, type), type);
}
template <Calls& via>
int type_create_f90_integer(int range, MPI_Datatype* type) {
  return never_freed(via.Type_create_f90_integer(range, type), type);
}

/// Both types are committed (MPI-4.0, 14.3); each is predefined or a new type, whose commit within the library was
/// intercepted if the library commits through its own symbols.
template <Calls& via>
int file_get_view(MPI_File file, MPI_Offset* displacement, MPI_Datatype* elementary, MPI_Datatype* view,
                  char* representation) {
  const int error = via.File_get_view(file, displacement, elementary, view, representation);
  if (error == MPI_SUCCESS && !runtime().ended())
    for (const MPI_Datatype type : {*elementary, *view})
      if (!predefined(type) && !is_pair_with_gaps(type)) runtime().types.insert(type);
  return error;
}

template <Calls& via, auto slot, class Function>
int op_create(Function* function, int commutes, MPI_Op* op) {
  const int error = (via.*slot)(function, commutes, op);
  if (error == MPI_SUCCESS) runtime().ops.made(*op, commutes != 0);
  return error;
}

template <Calls& via>
int op_free(MPI_Op* op) {
  bool commutes = false;
  const MPI_Op freed = op ? *op : MPI_OP_NULL;
  const bool known = op && runtime().ops.remove(freed, &commutes);
  const int error = via.Op_free(op);
  if (error != MPI_SUCCESS && known) runtime().ops.made(freed, commutes);
  return error;
}

template <Calls& via>
int op_create_plain(MPI_User_function* function, int commutes, MPI_Op* op) {
  return op_create<via, &Calls::Op_create>(function, commutes, op);
}
#ifdef BESTRIDE_DECLARES_Op_create_c
template <Calls& via>
int op_create_large(MPI_User_function_c* function, int commutes, MPI_Op* op) {
  return op_create<via, &Calls::Op_create_c>(function, commutes, op);
}
#endif

}  // namespace
}  // namespace bestride::inline interpose

BESTRIDE_PLAIN_ENTRY(Type_commit, (MPI_Datatype * type), type_commit, (type))
BESTRIDE_PLAIN_ENTRY(Type_dup, (MPI_Datatype type, MPI_Datatype* copy), type_dup, (type, copy))
BESTRIDE_PLAIN_ENTRY(Type_free, (MPI_Datatype * type), type_free, (type))
BESTRIDE_PLAIN_ENTRY(Type_get_contents,
                     (MPI_Datatype type, int max_integers, int max_addresses, int max_types, int* integers,
                      MPI_Aint* addresses, MPI_Datatype* types),
                     type_get_contents, (type, max_integers, max_addresses, max_types, integers, addresses, types))
BESTRIDE_PLAIN_ENTRY(Type_get_contents_c,
                     (MPI_Datatype type, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_counts,
                      MPI_Count max_types, int* integers, MPI_Aint* addresses, MPI_Count* counts, MPI_Datatype* types),
                     type_get_contents_c,
                     (type, max_integers, max_addresses, max_counts, max_types, integers, addresses, counts, types))
BESTRIDE_PLAIN_ENTRY(Type_create_f90_real, (int precision, int range, MPI_Datatype* type), type_create_f90_real,
                     (precision, range, type))
BESTRIDE_PLAIN_ENTRY(Type_create_f90_complex, (int precision, int range, MPI_Datatype* type), type_create_f90_complex,
                     (precision, range, type))
BESTRIDE_PLAIN_ENTRY(Type_create_f90_integer, (int range, MPI_Datatype* type), type_create_f90_integer, (range, type))
BESTRIDE_PLAIN_ENTRY(File_get_view,
                     (MPI_File file, MPI_Offset* displacement, MPI_Datatype* elementary, MPI_Datatype* view,
                      char* representation),
                     file_get_view, (file, displacement, elementary, view, representation))
BESTRIDE_PLAIN_ENTRY(Op_create, (MPI_User_function * function, int commutes, MPI_Op* op), op_create_plain,
                     (function, commutes, op))
BESTRIDE_PLAIN_ENTRY(Op_create_c, (MPI_User_function_c * function, int commutes, MPI_Op* op), op_create_large,
                     (function, commutes, op))
BESTRIDE_PLAIN_ENTRY(Op_free, (MPI_Op * op), op_free, (op))
