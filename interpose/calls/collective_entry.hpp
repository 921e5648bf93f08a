// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the entries of collectives that move data.
#include "interpose/calls/entry.hpp"
#include "interpose/message/respelled_blocks.hpp"

// The parameters of a direction, with one count and with an array of counts, and their names.
#define BESTRIDE_SEND(Count) const void *send_buffer, Count send_count, MPI_Datatype send_type
#define BESTRIDE_SENT(Blocks, Count) \
  Blocks<const void*, Count> { send_buffer, send_count, send_type }
#define BESTRIDE_SEND_V(Count, Displacement) \
  const void *send_buffer, const Count *send_counts, const Displacement *send_at, MPI_Datatype send_type
#define BESTRIDE_SENT_V(Count, Displacement) \
  VaryingBlocks<const void*, Count, Displacement> { send_buffer, send_counts, send_at, send_type }
#define BESTRIDE_RECEIVE(Count) void *receive_buffer, Count receive_count, MPI_Datatype receive_type
#define BESTRIDE_RECEIVED(Blocks, Count) \
  Blocks<void*, Count> { receive_buffer, receive_count, receive_type }
#define BESTRIDE_RECEIVE_V(Count, Displacement) \
  void *receive_buffer, const Count *receive_counts, const Displacement *receive_at, MPI_Datatype receive_type
#define BESTRIDE_RECEIVED_V(Count, Displacement) \
  VaryingBlocks<void*, Count, Displacement> { receive_buffer, receive_counts, receive_at, receive_type }

#define BESTRIDE_ROOTED(name, body, send, sent, receive, received, rest, rest_names)                            \
  BESTRIDE_ENTRY(name, body,                                                                                    \
                 (BESTRIDE_UNWRAP send, BESTRIDE_UNWRAP receive, int root, MPI_Comm comm BESTRIDE_UNWRAP rest), \
                 (BESTRIDE_UNWRAP sent, BESTRIDE_UNWRAP received, root, comm BESTRIDE_UNWRAP rest_names))
#define BESTRIDE_AMONG_ALL(name, body, send, sent, receive, received, rest, rest_names)                           \
  BESTRIDE_ENTRY(name, body, (BESTRIDE_UNWRAP send, BESTRIDE_UNWRAP receive, MPI_Comm comm BESTRIDE_UNWRAP rest), \
                 (BESTRIDE_UNWRAP sent, BESTRIDE_UNWRAP received, comm BESTRIDE_UNWRAP rest_names))
