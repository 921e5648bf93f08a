! SPDX-License-Identifier: Apache-2.0
! Ways to spend time (slow_*) and ways to wait for a rank that does (meet_*) of the generated Fortran programs. With USE_F08
! they are compiled against mpi_f08, otherwise against mpi.
#ifdef USE_F08
#define MPI_MODULE mpi_f08
#define HANDLE(kind) type(kind)
#else
#define MPI_MODULE mpi
#define HANDLE(kind) integer
#endif
module awkward
  use MPI_MODULE
  use iso_c_binding
  implicit none
  integer :: rank, ranks, last_tag = 0, error
  real(8) :: sink = 1
  integer, target :: exposed(1), shown(1)
  interface
    integer(c_int) function c_usleep(time) bind(c, name='usleep')
      import
      integer(c_int), value :: time
    end function
    subroutine c_exit(code) bind(c, name='exit')
      import
      integer(c_int), value :: code
    end subroutine
  end interface
contains
  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a,i0,a,a)', 'rank ', rank, ': wrong: ', what
    flush(6)
    call MPI_Abort(MPI_COMM_WORLD, 90, error)
  end subroutine
  real(8) function now()
    integer(8) :: ticks, rate
    call system_clock(ticks, rate)
    now = real(ticks, 8) / real(rate, 8)
  end function
  subroutine slow_nap(t)
    real(8), intent(in) :: t
    real(8) :: last
    integer :: ignored
    last = now() + t
    do while (now() < last)
      ignored = c_usleep(int(1d6 * min(0.9d0, max(1d-6, last - now()))))
    end do
  end subroutine
  subroutine slow_work(t)
    real(8), intent(in) :: t
    real(8) :: last
    integer :: i
    last = now() + t
    do while (now() < last)
      do i = 1, 20000
        sink = sink * 1.0000001d0 + 1d-9
      end do
      if (sink > 1d9) sink = 1
    end do
  end subroutine
  subroutine slow_mixed(t)
    real(8), intent(in) :: t
    real(8) :: last
    last = now() + t
    do while (now() < last)
      call slow_work(0.05d0)
      call slow_nap(0.05d0)
    end do
  end subroutine
  subroutine slow_arrays(t)
    real(8), intent(in) :: t
    real(8) :: last
    real(8), allocatable :: a(:, :), b(:, :)
    last = now() + t
    do while (now() < last)
      allocate (a(200, 200), b(200, 200))
      call random_number(a)
      b = matmul(a, a)
      sink = b(1, 1)
      deallocate (a, b)
    end do
  end subroutine
  subroutine slow_write(t)
    real(8), intent(in) :: t
    real(8) :: last, block(10000)
    integer :: unit, i
    character(32) :: name
    block = 1.5d0
    write (name, '(a,i0)') 'restart.', rank
    last = now() + t
    do while (now() < last)
      open (newunit=unit, file=name, form='unformatted', access='stream', status='replace')
      do i = 1, 100
        write (unit) block
      end do
      close (unit, status='delete')
    end do
  end subroutine
  subroutine slow_print(t)
    real(8), intent(in) :: t
    real(8) :: last
    integer :: unit, i
    open (newunit=unit, status='scratch', form='formatted')
    last = now() + t
    do while (now() < last)
      rewind (unit)
      do i = 1, 2000
        write (unit, '(es22.14,1x,i8)') sink, i
      end do
    end do
    close (unit)
  end subroutine
  subroutine slow_command(t)
    real(8), intent(in) :: t
    character(64) :: command
    integer :: code
    write (command, '(a,f0.2,a)') 'sleep ', max(t, 1d0), '; exit 3'
    call execute_command_line(command, exitstat=code)
    call check(code == 3, 'command')
  end subroutine
  subroutine slow_openmp(t)
    real(8), intent(in) :: t
    real(8) :: last
    integer :: i
    last = now() + t
    do while (now() < last)
      !$omp parallel do num_threads(2) reduction(+:sink)
      do i = 1, 100000
        sink = sink + 1d-12 * i
      end do
      if (sink > 1d9) sink = 1
    end do
  end subroutine
  subroutine slow_tests_mpi(t)
    real(8), intent(in) :: t
    real(8) :: last
    logical :: found
    integer :: ignored
    last = now() + t
    do while (now() < last)
      call MPI_Iprobe(MPI_ANY_SOURCE, 32000, MPI_COMM_WORLD, found, MPI_STATUS_IGNORE, error)
      ignored = c_usleep(1000)
    end do
  end subroutine

  integer(8) function meet_barrier(owner, token) result(v)
    integer, intent(in) :: owner, token
    call MPI_Barrier(MPI_COMM_WORLD, error)
    v = token + 0 * owner
  end function
  integer(8) function meet_bcast(owner, token) result(v)
    integer, intent(in) :: owner, token
    integer :: buffer
    buffer = merge(token, 0, rank == owner)
    call MPI_Bcast(buffer, 1, MPI_INTEGER, owner, MPI_COMM_WORLD, error)
    v = buffer
  end function
  integer(8) function meet_allreduce(owner, token) result(v)
    integer, intent(in) :: owner, token
    integer :: in, out
    in = merge(token, 0, rank == owner)
    call MPI_Allreduce(in, out, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    v = out
  end function
  integer(8) function meet_receive(owner, token) result(v)
    integer, intent(in) :: owner, token
    integer :: buffer, i
    last_tag = last_tag + 1
    buffer = token
    if (rank == owner) then
      do i = 0, ranks - 1
        if (i /= owner) call MPI_Send(buffer, 1, MPI_INTEGER, i, last_tag, MPI_COMM_WORLD, error)
      end do
    else
      call MPI_Recv(buffer, 1, MPI_INTEGER, merge(owner, MPI_ANY_SOURCE, mod(token, 2) == 0), last_tag, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, error)
    end if
    v = buffer
  end function
  integer(8) function meet_test(owner, token) result(v)
    integer, intent(in) :: owner, token
    HANDLE(MPI_Request) :: request
    logical :: done
    integer :: ignored
    call MPI_Ibarrier(MPI_COMM_WORLD, request, error)
    done = .false.
    do while (.not. done)
      call MPI_Test(request, done, MPI_STATUS_IGNORE, error)
      if (mod(token, 2) == 0) ignored = c_usleep(500)
    end do
    v = token + 0 * owner
  end function
  integer(8) function meet_waitall(owner, token) result(v)
    integer, intent(in) :: owner, token
    HANDLE(MPI_Request), allocatable :: requests(:)
    integer :: i, count
    integer, allocatable, target :: out(:), in(:)
    allocate (requests(2 * ranks), out(0:ranks - 1), in(0:ranks - 1))
    last_tag = last_tag + 1
    out = token
    count = 0
    do i = 0, ranks - 1
      call MPI_Irecv(in(i), 1, MPI_INTEGER, i, last_tag, MPI_COMM_WORLD, requests(count + 1), error)
      call MPI_Isend(out(i), 1, MPI_INTEGER, i, last_tag, MPI_COMM_WORLD, requests(count + 2), error)
      count = count + 2
    end do
    call MPI_Waitall(count, requests, MPI_STATUSES_IGNORE, error)
    v = in(owner)
  end function
  integer(8) function meet_gatherv(owner, token) result(v)
    integer, intent(in) :: owner, token
    integer :: in, out(1), counts(0:ranks - 1), places(0:ranks - 1)
    counts = 0
    counts(owner) = 1
    places = 0
    in = token
    call MPI_Allgatherv(in, counts(rank), MPI_INTEGER, out, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    v = out(1)
  end function
  integer(8) function meet_split(owner, token) result(v)
    integer, intent(in) :: owner, token
    HANDLE(MPI_Comm) :: part
    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, 1, rank == owner), ranks - rank, part, error)
    call MPI_Barrier(part, error)
    call MPI_Comm_free(part, error)
    v = token
  end function
  integer(8) function meet_large(owner, token) result(v)
    integer, intent(in) :: owner, token
    integer, allocatable :: data(:)
    integer :: i
    last_tag = last_tag + 1
    allocate (data(400000))
    data = token
    if (rank == owner) then
      do i = ranks - 1, 0, -1
        if (i /= owner) call MPI_Recv(data, 400000, MPI_INTEGER, i, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      end do
    else
      call MPI_Send(data, 400000, MPI_INTEGER, owner, last_tag, MPI_COMM_WORLD, error)
    end if
    v = data(400000)
  end function
  integer(8) function meet_fence(owner, token) result(v)
    integer, intent(in) :: owner, token
    HANDLE(MPI_Win) :: window
    exposed = token
    shown = 0
    call MPI_Win_create(exposed, 4_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, error)
    call MPI_Win_fence(0, window, error)
    call MPI_Get(shown, 1, MPI_INTEGER, owner, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, window, error)
    call MPI_Win_fence(0, window, error)
    call MPI_Win_free(window, error)
    v = token  ! with MPICH 4.0.2 some ranks do not have the data after the fence
  end function
  integer(8) function meet_file(owner, token) result(v)
    integer, intent(in) :: owner, token
    HANDLE(MPI_File) :: file
    integer :: buffer(1)
    character(32) :: name
    last_tag = last_tag + 1
    write (name, '(a,i0)') 'fields.', last_tag
    buffer = token + rank
    call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, file, error)
    call MPI_File_write_at_all(file, int(4 * rank, MPI_OFFSET_KIND), buffer, 1, MPI_INTEGER, MPI_STATUS_IGNORE, error)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_File_read_at(file, int(4 * owner, MPI_OFFSET_KIND), buffer, 1, MPI_INTEGER, MPI_STATUS_IGNORE, error)
    call MPI_File_close(file, error)
    v = buffer(1) - owner
  end function
end module
