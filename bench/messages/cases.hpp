// SPDX-License-Identifier: Apache-2.0
#pragma once
// The measured cases. A case is a message like those of applications.
#include <functional>
#include <string>
#include <vector>

#include "shape.hpp"

namespace messages {

/// Both ranks send (send_count, send) and receive (receive_count, receive).
struct Message {
  Shape send;
  int send_count = 1;
  Shape receive;
  int receive_count = 1;

  Message(Shape shape, int count = 1) : send(shape), send_count(count), receive(shape), receive_count(count) {}
  Message(Shape sent, Shape received) : send(sent), receive(received) {}
};

struct Case {
  std::string family;
  std::string name;  ///< unique; starts with the family
  std::function<Message()> make;
};

/// Plain layouts: vectors, halo faces, arrays of structs, resized elements, index lists; sizes about the limit of eager
/// messages; messages with a contiguous end.
void add_plain(std::vector<Case>& cases);
/// The application kernels of DDTBench (Schneider, Gerstenberger, Hoefler, EuroMPI 2012) as point-to-point messages.
void add_ddtbench(std::vector<Case>& cases);

}  // namespace messages
