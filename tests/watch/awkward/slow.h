// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ways to spend `t` seconds outside of communication. generate.py chooses among the functions slow_*.
#include "base.h"

static void slow_nap(double t) {
  for (double end = now() + t, left; (left = end - now()) > 0;) {
    struct timespec s = {(time_t)left, (long)((left - (time_t)left) * 1e9)};
    nanosleep(&s, NULL);
  }
}
static void compute(void) {
  for (int i = 0; i < 20000; ++i) sink = sink * 1.0000001 + 1e-9;
}
static void slow_work(double t) {
  for (double end = now() + t; now() < end;) compute();
}
static void slow_mixed(double t) {
  for (double end = now() + t; now() < end;) {
    slow_work(0.05);
    slow_nap(0.05);
  }
}
static void slow_memory(double t) {
  for (double end = now() + t; now() < end;) {
    char* p = (char*)mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 16 << 20; i += 4096) p[i] = 1;
    munmap(p, 16 << 20);
  }
}
static void slow_checkpoint(double t) {
  char name[64];
  snprintf(name, sizeof name, "checkpoint.%d", rank);
  char* data = NEW(char, 1 << 20);
  int length = 1;
  for (double end = now() + t; now() < end; length = length < 32 ? length + 1 : 1) {
    int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    for (int i = 0; i < length; ++i) check(write(file, data, 1 << 20) == 1 << 20, "write");
    fsync(file);
    close(file);
  }
  unlink(name);
  free(data);
}
static void slow_read_file(double t) {
  char line[256];
  for (double end = now() + t; now() < end;) {
    FILE* file = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, file)) sink += line[0];
    fclose(file);
  }
}
static void slow_system_sleep(double t) {
  char command[64];
  snprintf(command, sizeof command, "sleep %.2f; exit 5", t);
  check(WEXITSTATUS(system(command)) == 5, "system");
}
static void slow_system_work(double t) {
  char command[96];
  snprintf(command, sizeof command, "timeout %.2f sh -c 'while :; do :; done'", t);
  check(WEXITSTATUS(system(command)) == 124, "timeout");
}
static void slow_compile(double t) {
  char name[64], command[160];
  snprintf(name, sizeof name, "unit%d.c", rank);
  FILE* file = fopen(name, "w");
  for (int i = 0; i < 300; ++i)
    fprintf(file, "double f%d(double x) { double y = x; for (int i = 0; i < 99; ++i) y = y * x + %d; return y; }\n", i,
            i);
  fclose(file);
  snprintf(command, sizeof command, "cc -O2 -c -o unit%d.o %s", rank, name);
  for (double end = now() + t; now() < end;) check(system(command) == 0, "compile");
}
static void in_child(double t, void (*run)(double), int how) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run(t);
    if (how == SIGABRT) abort();
    if (how == SIGSEGV) *(volatile int*)8 = 1;
    if (how == SIGKILL) kill(getpid(), SIGKILL);
    if (how == 3) exit(3);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (how == 0) check(status == 0, "child");
  if (how == 3) check(WEXITSTATUS(status) == 3, "child that exits with 3");
  if (how > 3) check(WIFSIGNALED(status) && WTERMSIG(status) == how, "child that crashes");
}
static void slow_child_work(double t) { in_child(t, slow_work, 0); }
static void slow_child_nap(double t) { in_child(t, slow_nap, 0); }
static void slow_child_abort(double t) { in_child(t, slow_nap, SIGABRT); }
static void slow_child_segv(double t) { in_child(t, slow_work, SIGSEGV); }
static void slow_child_killed(double t) { in_child(t, slow_mixed, SIGKILL); }
static void slow_child_exit(double t) { in_child(t, slow_nap, 3); }
static void slow_spawned(double t) {
  char seconds[32];
  snprintf(seconds, sizeof seconds, "%.2f", t);
  char word[] = "sleep";
  char* words[] = {word, seconds, NULL};
  pid_t child;
  check(posix_spawnp(&child, "sleep", NULL, NULL, words, environ) == 0, "spawn");
  int status = 1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  check(status == 0, "sleep");
}
static void slow_popen(double t) {
  char command[64], line[64] = "";
  snprintf(command, sizeof command, "sleep %.2f; echo done", t);
  FILE* pipe = popen(command, "r");
  check(fgets(line, sizeof line, pipe) && !strcmp(line, "done\n"), "popen");
  pclose(pipe);
}
static void* thread_work(void* t) { return slow_work(*(double*)t), (void*)NULL; }
static void* thread_nap(void* t) { return slow_nap(*(double*)t), (void*)NULL; }
static void in_thread(void* (*run)(void*), void* argument) {
  pthread_t thread;
  check(pthread_create(&thread, NULL, run, argument) == 0, "thread");
  pthread_join(thread, NULL);
}
static void slow_thread_work(double t) { in_thread(thread_work, &t); }
static void slow_thread_nap(double t) { in_thread(thread_nap, &t); }
struct shared_flag {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  double t;
  int set;
};
static void* set_flag(void* argument) {
  struct shared_flag* flag = (struct shared_flag*)argument;
  slow_mixed(flag->t);
  pthread_mutex_lock(&flag->mutex);
  flag->set = 1;
  pthread_cond_signal(&flag->cond);
  pthread_mutex_unlock(&flag->mutex);
  return NULL;
}
static void slow_condition(double t) {
  struct shared_flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, t, 0};
  pthread_t thread;
  pthread_create(&thread, NULL, set_flag, &flag);
  pthread_mutex_lock(&flag.mutex);
  while (!flag.set) pthread_cond_wait(&flag.cond, &flag.mutex);
  pthread_mutex_unlock(&flag.mutex);
  pthread_join(thread, NULL);
}
static void* hold_mutex(void* argument) {
  struct shared_flag* flag = (struct shared_flag*)argument;
  pthread_mutex_lock(&flag->mutex);
  __atomic_store_n(&flag->set, 1, __ATOMIC_SEQ_CST);
  slow_work(flag->t);
  pthread_mutex_unlock(&flag->mutex);
  return NULL;
}
static void slow_mutex(double t) {
  struct shared_flag flag = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, t, 0};
  pthread_t thread;
  pthread_create(&thread, NULL, hold_mutex, &flag);
  while (!__atomic_load_n(&flag.set, __ATOMIC_SEQ_CST)) sched_yield();
  pthread_mutex_lock(&flag.mutex);
  pthread_mutex_unlock(&flag.mutex);
  pthread_join(thread, NULL);
}
static void slow_poll(double t) {
  for (double end = now() + t; now() < end;) poll(NULL, 0, 100);
}
static void slow_select(double t) {
  for (double end = now() + t, left; (left = end - now()) > 0;) {
    struct timeval s = {(time_t)left, (suseconds_t)((left - (time_t)left) * 1e6)};
    select(0, NULL, NULL, NULL, &s);
  }
}
static void slow_yield(double t) {
  for (double end = now() + t; now() < end;) sched_yield();
}
static volatile sig_atomic_t alarms;
static void count_alarm(int number) { alarms = alarms + (number == SIGALRM); }
static void with_timer(double first, double period, double t, int pauses) {
  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = count_alarm;
  action.sa_flags = pauses ? 0 : SA_RESTART;
  sigaction(SIGALRM, &action, &before);
  sigset_t alarm_only, old;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  sigprocmask(pauses ? SIG_BLOCK : SIG_UNBLOCK, &alarm_only, &old);
  int seen = alarms;
  struct itimerval timer = {{(time_t)period, (suseconds_t)((period - (time_t)period) * 1e6)},
                            {(time_t)first, (suseconds_t)((first - (time_t)first) * 1e6)}};
  struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  sigset_t during = old;
  sigdelset(&during, SIGALRM);
  if (pauses)
    while (alarms == seen) sigsuspend(&during);
  else
    slow_work(t);
  setitimer(ITIMER_REAL, &none, NULL);
  sigprocmask(SIG_SETMASK, &old, NULL);
  sigaction(SIGALRM, &before, NULL);
}
static void slow_timer(double t) { with_timer(0.01, 0.01, t, 0); }
static void slow_alarm(double t) { with_timer(t, 0, t, 1); }
static sem_t posted_by_handler;
static void post_semaphore(int number) {
  if (number == SIGALRM) sem_post(&posted_by_handler);
}
static void slow_semaphore(double t) {
  struct sigaction action, before;
  memset(&action, 0, sizeof action);
  action.sa_handler = post_semaphore;
  action.sa_flags = SA_RESTART;
  sem_init(&posted_by_handler, 0, 0);
  sigaction(SIGALRM, &action, &before);
  struct itimerval timer = {{0, 0}, {(time_t)t, (suseconds_t)((t - (time_t)t) * 1e6) + 1}};
  setitimer(ITIMER_REAL, &timer, NULL);
  while (sem_wait(&posted_by_handler) != 0) continue;
  sigaction(SIGALRM, &before, NULL);
  sem_destroy(&posted_by_handler);
}
static void slow_file_lock(double t) {
  char name[64];
  snprintf(name, sizeof name, "lock.%d", rank);
  int ends[2];
  char byte = 0;
  check(pipe(ends) == 0, "pipe");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    int file = open(name, O_CREAT | O_RDWR, 0600);
    flock(file, LOCK_EX);
    if (write(ends[1], &byte, 1) != 1) _exit(1);
    slow_nap(t);
    _exit(0);
  }
  check(read(ends[0], &byte, 1) == 1, "read");
  int file = open(name, O_CREAT | O_RDWR, 0600);
  while (flock(file, LOCK_EX) != 0) continue;
  close(file);
  close(ends[0]);
  close(ends[1]);
  waitpid(child, NULL, 0);
}
static void slow_openmp(double t) {
#pragma omp parallel num_threads(2)
  {
    for (double end = now() + t; now() < end;) {
      double x = 1;
      for (int i = 0; i < 20000; ++i) x = x * 1.0000001 + 1e-9;
      if (x < 0) sink = x;
    }
  }
}
static void slow_quiet_polls_mpi(double t) {
  int found;
  for (double end = now() + t; now() < end;) {
    MPI_Iprobe(MPI_ANY_SOURCE, 32000, WORLD, &found, NO_STATUS);
    usleep(2000);
  }
}
static void slow_spinning_polls_mpi(double t) {
  int found;
  for (double end = now() + t; now() < end;) MPI_Iprobe(MPI_ANY_SOURCE, 32000, WORLD, &found, NO_STATUS);
}
static void slow_self_messages_mpi(double t) {
  long out = rank, in = -1;
  for (double end = now() + t; now() < end; slow_nap(0.01))
    MPI_Sendrecv(&out, 1, MPI_LONG, 0, 1, &in, 1, MPI_LONG, 0, 1, MPI_COMM_SELF, NO_STATUS);
  check(in == rank || in == -1, "message to itself");
}
static void slow_clock_mpi(double t) {
  for (double end = MPI_Wtime() + t; MPI_Wtime() < end;) continue;
}
static void slow_pinned(double t) {
  cpu_set_t before, one;
  sched_getaffinity(0, sizeof before, &before);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &before) && CPU_COUNT(&one) == 0) CPU_SET(i, &one);
  sched_setaffinity(0, sizeof one, &one);
  slow_work(t);
  sched_setaffinity(0, sizeof before, &before);
}
