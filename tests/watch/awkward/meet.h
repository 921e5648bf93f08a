// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ways to wait for a rank, the owner. Each returns `token`, which the owner has. generate.py chooses among the
// functions meet_*; those that end in _mt need MPI_THREAD_MULTIPLE.
#include "base.h"

static void give(int owner, long token, int tag) {
  for (int to = 0; to < size; ++to)
    if (to != owner) MPI_Send(&token, 1, MPI_LONG, to, tag, WORLD);
}
static long meet_barrier(int owner, long token) { return (void)owner, MPI_Barrier(WORLD), token; }
static long meet_bcast(int owner, long token) {
  long v = rank == owner ? token : 0;
  MPI_Bcast(&v, 1, MPI_LONG, owner, WORLD);
  return v;
}
static long meet_allreduce(int owner, long token) {
  long in = rank == owner ? token : 0, out = 0;
  MPI_Allreduce(&in, &out, 1, MPI_LONG, MPI_SUM, WORLD);
  return out;
}
static long meet_receive(int owner, long token) {
  int tag = ++last_tag;
  if (rank == owner) return give(owner, token, tag), token;
  long v;
  MPI_Recv(&v, 1, MPI_LONG, owner, tag, WORLD, NO_STATUS);
  return v;
}
static long meet_any_source(int owner, long token) {
  int tag = ++last_tag;
  if (rank == owner) return give(owner, token, tag), token;
  long v;
  MPI_Recv(&v, 1, MPI_LONG, MPI_ANY_SOURCE, tag, WORLD, NO_STATUS);
  return v;
}
static long meet_chain(int owner, long token) {
  int tag = ++last_tag, place = (rank - owner + size) % size;
  long v = token;
  if (place > 0) MPI_Recv(&v, 1, MPI_LONG, (rank + size - 1) % size, tag, WORLD, NO_STATUS);
  if (place < size - 1) MPI_Send(&v, 1, MPI_LONG, (rank + 1) % size, tag, WORLD);
  return v;
}
static long meet_probe(int owner, long token) {
  int tag = ++last_tag;
  if (rank == owner) return give(owner, token, tag), token;
  long v;
  MPI_Status status;
  MPI_Probe(MPI_ANY_SOURCE, tag, WORLD, &status);
  MPI_Recv(&v, 1, MPI_LONG, status.MPI_SOURCE, tag, WORLD, NO_STATUS);
  return v;
}
static void rest(int how) {
  if (how % 3 == 0) usleep(1000);
  if (how % 3 == 1) sched_yield();
}
static long meet_iprobe(int owner, long token) {
  int tag = ++last_tag, found = 0;
  if (rank == owner) return give(owner, token, tag), token;
  long v;
  for (; !found; rest(tag)) MPI_Iprobe(MPI_ANY_SOURCE, tag, WORLD, &found, NO_STATUS);
  MPI_Recv(&v, 1, MPI_LONG, owner, tag, WORLD, NO_STATUS);
  return v;
}
static long meet_improbe(int owner, long token) {
  int tag = ++last_tag, found = 0;
  if (rank == owner) return give(owner, token, tag), token;
  long v;
  MPI_Message message;
  for (; !found; rest(tag + 1)) MPI_Improbe(owner, tag, WORLD, &found, &message, NO_STATUS);
  MPI_Mrecv(&v, 1, MPI_LONG, &message, NO_STATUS);
  return v;
}
static long meet_test(int owner, long token) {
  int tag = ++last_tag, done = 0;
  if (rank == owner) return give(owner, token, tag), token;
  long v;
  MPI_Request request;
  MPI_Irecv(&v, 1, MPI_LONG, owner, tag, WORLD, &request);
  for (; !done; rest(tag)) MPI_Test(&request, &done, NO_STATUS);
  return v;
}
static long several(int owner, long token, int how) {
  int tag = last_tag + 1, finished = 0, some, indices[3];
  last_tag += 3;
  if (rank == owner) {
    for (int i = 0; i < 3; ++i) give(owner, token + i, tag + i);
    return token;
  }
  long v[3];
  MPI_Request requests[3];
  for (int i = 0; i < 3; ++i) MPI_Irecv(&v[i], 1, MPI_LONG, owner, tag + i, WORLD, &requests[i]);
  while (finished < 3) {
    some = 0;
    if (how == 0) MPI_Waitany(3, requests, indices, NO_STATUS), some = 1;
    if (how == 1) MPI_Waitsome(3, requests, &some, indices, MPI_STATUSES_IGNORE);
    if (how == 2) MPI_Testsome(3, requests, &some, indices, MPI_STATUSES_IGNORE), rest(tag);
    if (how == 3) MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), some = 3;
    if (how == 4) MPI_Testall(3, requests, &some, MPI_STATUSES_IGNORE), some *= 3, rest(tag);
    if (some != MPI_UNDEFINED) finished += some;
  }
  check(v[1] == v[0] + 1 && v[2] == v[0] + 2, "several messages");
  return v[0];
}
static long meet_waitany(int owner, long token) { return several(owner, token, 0); }
static long meet_waitsome(int owner, long token) { return several(owner, token, 1); }
static long meet_testsome(int owner, long token) { return several(owner, token, 2); }
static long meet_waitall(int owner, long token) { return several(owner, token, 3); }
static long meet_testall(int owner, long token) { return several(owner, token, 4); }
static long to_owner(int owner, long token, int count, int how) {
  int tag = ++last_tag;
  long* data = NEW(long, count);
  data[count - 1] = token + rank;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == owner) {
    for (int from = size - 1; from >= 0; --from) {
      if (from == owner) continue;
      MPI_Recv(data, count, MPI_LONG, from, tag, WORLD, NO_STATUS);
      check(data[count - 1] == token + from, "message to the owner");
    }
  } else if (how == 0) {
    MPI_Ssend(data, count, MPI_LONG, owner, tag, WORLD);
  } else if (how == 1) {
    MPI_Send(data, count, MPI_LONG, owner, tag, WORLD);
  } else {
    MPI_Issend(data, count, MPI_LONG, owner, tag, WORLD, &request);
    MPI_Wait(&request, NO_STATUS);
  }
  free(data);
  return token;
}
static long meet_ssend(int owner, long token) { return to_owner(owner, token, 1, 0); }
static long meet_large_send(int owner, long token) { return to_owner(owner, token, 300000, 1); }
static long meet_small_send(int owner, long token) { return to_owner(owner, token, 8, 1); }
static long meet_issend(int owner, long token) { return to_owner(owner, token, 2000, 2); }
static long meet_sendrecv(int owner, long token) {
  int tag = ++last_tag;
  long in = token, out = token;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == owner || (rank != owner && rank != peer)) continue;
    int other = rank == owner ? peer : owner;
    MPI_Sendrecv(&out, 1, MPI_LONG, other, tag, &in, 1, MPI_LONG, other, tag, WORLD, NO_STATUS);
  }
  return in;
}
static long meet_persistent(int owner, long token) {
  int tag = ++last_tag;
  long v = token;
  MPI_Request request;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == owner || (rank != owner && rank != peer)) continue;
    if (rank == owner)
      MPI_Send_init(&v, 1, MPI_LONG, peer, tag, WORLD, &request);
    else
      MPI_Recv_init(&v, 1, MPI_LONG, owner, tag, WORLD, &request);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&request);
      MPI_Wait(&request, NO_STATUS);
    }
    MPI_Request_free(&request);
  }
  return v;
}
static long meet_ibarrier(int owner, long token) {
  int done = 0, how = ++last_tag;
  MPI_Request request;
  MPI_Ibarrier(WORLD, &request);
  for (; !done; rest(how)) MPI_Test(&request, &done, NO_STATUS);
  return (void)owner, token;
}
static long meet_ibcast(int owner, long token) {
  long v = rank == owner ? token : 0;
  MPI_Request request;
  MPI_Ibcast(&v, 1, MPI_LONG, owner, WORLD, &request);
  MPI_Wait(&request, NO_STATUS);
  return v;
}
static long meet_gatherv(int owner, long token) {
  int *counts = NEW(int, size), *places = NEW(int, size), root = (owner + 1) % size;
  counts[owner] = 1;
  long in = token, out = token;
  MPI_Gatherv(&in, rank == owner, MPI_LONG, &out, counts, places, MPI_LONG, root, WORLD);
  free(counts);
  free(places);
  return out;
}
static long meet_scatterv(int owner, long token) {
  int *counts = NEW(int, size), *places = NEW(int, size);
  for (int i = 0; i < size; i += 2) counts[i] = 1;
  long out = token;
  MPI_Scatterv(&token, counts, places, MPI_LONG, &out, rank % 2 == 0, MPI_LONG, owner, WORLD);
  free(counts);
  free(places);
  return out;
}
static long meet_alltoallv(int owner, long token) {
  int *out = NEW(int, size), *in = NEW(int, size), *places = NEW(int, size);
  long* data = NEW(long, size);
  for (int i = 0; i < size; ++i) out[i] = rank == owner;
  in[owner] = 1;
  MPI_Alltoallv(&token, out, places, MPI_LONG, data, in, places, MPI_LONG, WORLD);
  long v = data[0];
  free(out);
  free(in);
  free(places);
  free(data);
  return v;
}
static long meet_other_types(int owner, long token) {
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_LONG, &pair);
  MPI_Type_commit(&pair);
  long v[4] = {token, token, token, token};
  if (rank != owner) v[0] = v[1] = v[2] = v[3] = 0;
  if (rank % 2)
    MPI_Bcast(v, 2, pair, owner, WORLD);
  else
    MPI_Bcast(v, 4, MPI_LONG, owner, WORLD);
  long* all = NEW(long, 4 * size);
  MPI_Gather(v, rank % 2 ? 2 : 4, rank % 2 ? pair : MPI_LONG, all, 2, pair, owner, WORLD);
  if (rank == owner) check(all[4 * size - 1] == token, "gather of other types");
  free(all);
  MPI_Type_free(&pair);
  return v[3];
}
static long meet_scan(int owner, long token) {
  long in = rank == 0 ? token : 0, out = 0;
  MPI_Scan(&in, &out, 1, MPI_LONG, MPI_SUM, WORLD);
  return (void)owner, out;
}
static long meet_reduce_scatter(int owner, long token) {
  long *in = NEW(long, size), out = 0;
  for (int i = 0; i < size; ++i) in[i] = rank == owner ? token : 0;
  MPI_Reduce_scatter_block(in, &out, 1, MPI_LONG, MPI_SUM, WORLD);
  free(in);
  return out;
}
static long meet_split(int owner, long token) {
  MPI_Comm part, dup;
  MPI_Comm_split(WORLD, rank == owner ? MPI_UNDEFINED : 1, -rank, &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm_dup(part, &dup);
    MPI_Barrier(dup);
    MPI_Comm_free(&dup);
    MPI_Comm_free(&part);
  }
  return token;
}
static long meet_idup(int owner, long token) {
  MPI_Comm dup;
  MPI_Request request;
  MPI_Comm_idup(WORLD, &dup, &request);
  MPI_Wait(&request, NO_STATUS);
  long v = rank == owner ? token : 0;
  MPI_Bcast(&v, 1, MPI_LONG, owner, dup);
  MPI_Comm_free(&dup);
  return v;
}
static long meet_group(int owner, long token) {
  MPI_Group all, others;
  MPI_Comm part;
  MPI_Comm_group(WORLD, &all);
  MPI_Group_excl(all, 1, &owner, &others);
  if (rank != owner && size > 1) {
    MPI_Comm_create_group(WORLD, others, ++last_tag, &part);
    MPI_Barrier(part);
    MPI_Comm_free(&part);
  } else {
    ++last_tag;
  }
  MPI_Group_free(&all);
  MPI_Group_free(&others);
  MPI_Barrier(WORLD);
  return token;
}
static long meet_fence(int owner, long token) {
  long *base, out = token;
  MPI_Win window;
  MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, WORLD, &base, &window);
  *base = 0;
  MPI_Win_fence(0, window);
  if (rank == owner)
    for (int to = 0; to < size; ++to) MPI_Put(&out, 1, MPI_LONG, to, 0, 1, MPI_LONG, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  return token;  // with MPICH 4.0.2 some ranks don't have the data after the fence
}
static long meet_file(int owner, long token) {
  MPI_File file;
  long v = 0, mine = token + rank;
  char name[64];
  snprintf(name, sizeof name, "data.%d", ++last_tag);
  check(MPI_File_open(WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file) ==
            MPI_SUCCESS,
        "file");
  MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof(long), &mine, 1, MPI_LONG, NO_STATUS);
  MPI_File_sync(file);
  MPI_Barrier(WORLD);
  MPI_File_read_at(file, owner * (MPI_Offset)sizeof(long), &v, 1, MPI_LONG, NO_STATUS);
  MPI_File_close(&file);
  return v - owner;
}
static long meet_neighbors(int owner, long token) {
  MPI_Comm star;
  long v = token;
  int* others = NEW(int, size);
  for (int i = 0, next = 0; i < size; ++i)
    if (i != owner) others[next++] = i;
  MPI_Dist_graph_create_adjacent(WORLD, rank == owner ? 0 : 1, &owner, MPI_UNWEIGHTED, rank == owner ? size - 1 : 0,
                                 others, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &star);
  MPI_Neighbor_allgather(&token, 1, MPI_LONG, &v, 1, MPI_LONG, star);
  MPI_Comm_free(&star);
  free(others);
  return v;
}
static long meet_cart_without_neighbors(int owner, long token) {
  MPI_Comm line;
  int count = size, periodic = 0, from, to;
  long v = -1;
  MPI_Cart_create(WORLD, 1, &count, &periodic, 0, &line);
  MPI_Cart_shift(line, 0, 1, &from, &to);
  MPI_Sendrecv(&token, 1, MPI_LONG, to, 5, &v, 1, MPI_LONG, from, 5, line, NO_STATUS);
  MPI_Comm_free(&line);
  check(v == (rank ? token : -1), "neighbour in a line");
  return (void)owner, token;
}
static long meet_intercomm(int owner, long token) {
  if (size < 2) return token;
  MPI_Comm half, between;
  long v = token;
  int first = rank < size / 2, tag = ++last_tag;
  MPI_Comm_split(WORLD, first, rank, &half);
  MPI_Intercomm_create(half, 0, WORLD, first ? size / 2 : 0, tag, &between);
  MPI_Bcast(&v, 1, MPI_LONG, first ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, between);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  return (void)owner, v;
}
struct receive {
  long v;
  int from, tag;
};
static void* receive_in_thread(void* argument) {
  struct receive* receive = (struct receive*)argument;
  MPI_Recv(&receive->v, 1, MPI_LONG, receive->from, receive->tag, WORLD, NO_STATUS);
  return NULL;
}
static void* test_in_thread(void* argument) {
  struct receive* receive = (struct receive*)argument;
  MPI_Request request;
  int done = 0;
  MPI_Irecv(&receive->v, 1, MPI_LONG, receive->from, receive->tag, WORLD, &request);
  for (; !done; usleep(500)) MPI_Test(&request, &done, NO_STATUS);
  return NULL;
}
static long meet_receiving_thread_mt(int owner, long token) {
  struct receive receive = {token, owner, ++last_tag};
  if (rank == owner) return give(owner, token, receive.tag), token;
  in_thread(receive_in_thread, &receive);
  return receive.v;
}
static long meet_testing_thread_mt(int owner, long token) {
  struct receive receive = {token, owner, ++last_tag};
  if (rank == owner) return give(owner, token, receive.tag), token;
  in_thread(test_in_thread, &receive);
  return receive.v;
}
