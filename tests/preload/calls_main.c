/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

int main(int argc, char** argv) { return make_calls(&argc, &argv); }
