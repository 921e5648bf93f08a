! SPDX-License-Identifier: Apache-2.0
! A Fortran module with a procedure at a known line, for symbolizer_test.cpp. Compiled with -g -O1.
module sample_mod
  use iso_c_binding
  implicit none
  interface
    function sample_here() bind(C, name="sample_here")
      import :: c_ptr
      type(c_ptr) :: sample_here
    end function
  end interface
contains
  subroutine solve(here)
    type(c_ptr), intent(out) :: here
    here = sample_here()  ! line 15
  end subroutine
end module

subroutine sample_call_fortran(here) bind(C, name="sample_call_fortran")
  use sample_mod
  type(c_ptr), intent(out) :: here
  call solve(here)
end subroutine
