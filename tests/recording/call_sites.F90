! SPDX-License-Identifier: Apache-2.0
! The same MPI function from two lines, in one of three bindings: MPIF_H, USE_MPI, USE_MPI_F08. fortran_test.py reads this file.
program call_sites
#if defined(USE_MPI_F08)
  use mpi_f08
#elif defined(USE_MPI)
  use mpi
#endif
  implicit none
#if defined(MPIF_H)
  include 'mpif.h'
#endif
  integer :: ierr, i, rank, message(4)
#if defined(USE_MPI_F08)
  type(MPI_Request) :: request
#else
  integer :: request
#endif
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  message = rank
  do i = 1, 3
    call MPI_Bcast(message, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr) ! 3 calls
  end do
  do i = 1, 5
    call MPI_Bcast(message, 4, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr) ! 5 calls
    call MPI_Isend(message, 4, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, request, ierr) ! 5 calls
    call MPI_Recv(message, 4, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr) ! 5 calls
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr) ! 5 calls
  end do
  call MPI_Finalize(ierr)
end program
