! SPDX-License-Identifier: Apache-2.0
! Makes each call of counted.h once, through one of the three Fortran bindings: -DMPIF_H, -DUSE_MPI or -DUSE_MPI_F08.
program calls
#ifdef USE_MPI
  use mpi
#endif
#ifdef USE_MPI_F08
  use mpi_f08
#endif
  implicit none
#ifdef MPIF_H
  include 'mpif.h'
#endif
#ifdef USE_MPI_F08
  type(MPI_Datatype) :: column
  type(MPI_Request) :: requests(2)
#else
  integer :: column, requests(2)
#endif
  integer :: matrix(4, 4), row(4), back(4), position, error, i
  character :: packed(256)

  matrix = reshape([(i, i = 0, 15)], [4, 4])
  call MPI_Init(error)
  call MPI_Type_vector(4, 1, 4, MPI_INTEGER, column, error)
  call MPI_Type_commit(column, error)
  position = 0
  call MPI_Pack(matrix, 1, column, packed, 256, position, MPI_COMM_SELF, error)
  if (position /= 16) stop 1
  call MPI_Irecv(row, 4, MPI_INTEGER, 0, 7, MPI_COMM_SELF, requests(1), error)
  call MPI_Isend(matrix, 1, column, 0, 7, MPI_COMM_SELF, requests(2), error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  if (any(row /= [0, 4, 8, 12])) stop 2
  call MPI_Sendrecv(row, 4, MPI_INTEGER, 0, 9, back, 4, MPI_INTEGER, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE, error)
  if (any(back /= row)) stop 3
  call MPI_Type_free(column, error)
  if (MPI_Wtick() <= 0) stop 4
  call MPI_Finalize(error)
end program
