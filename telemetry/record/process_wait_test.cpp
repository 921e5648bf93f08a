// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/process_wait.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>

#include "telemetry/record/process_state.hpp"

using namespace bestride;

namespace {

/// A child process that executes a function.
class Child {
 public:
  template <class Function>
  explicit Child(Function function) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    function();
    for (;;) pause();
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int pid() const { return pid_; }
  /// What it waits for, once that begins with `words`, or after some seconds.
  ProcessWait wait(const std::string& words) const {
    ProcessWait wait;
    for (int i = 0; i < 500; ++i) {
      wait = process_wait(pid_, pid_);
      if (!words.empty() && wait.call.starts_with(words)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return wait;
  }

 private:
  const pid_t pid_;
};

/// False where the kernel does not show system calls.
bool shows_calls() { return access("/proc/self/syscall", R_OK) == 0; }

std::string own_name() {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  return name;
}

class Waits : public testing::Test {
 protected:
  void SetUp() override {
    if (!shows_calls()) GTEST_SKIP() << "this kernel has no /proc/PID/syscall";
  }
};

TEST_F(Waits, APipe) {
  const Child child([] {
    int ends[2];
    char byte;
    if (pipe(ends) == 0) (void)!read(ends[0], &byte, 1);
  });
  const ProcessWait wait = child.wait("read");
  EXPECT_EQ(wait.call, "read of a pipe");
  EXPECT_FALSE(wait.may_be_served);
}

TEST_F(Waits, ANamedPipe) {
  char folder[] = "/tmp/process_wait.XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/input";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const Child child([&] {
    char byte;
    (void)!read(open(path.c_str(), O_RDWR), &byte, 1);
  });
  EXPECT_EQ(child.wait("read").call, "read of " + path + " (FIFO)");
  unlink(path.c_str());
  rmdir(folder);
}

TEST_F(Waits, StandardInputMayBeAPerson) {
  const Child child([] {
    int ends[2];
    char byte;
    if (pipe(ends) == 0) (void)!read(dup2(ends[0], 0), &byte, 1);
  });
  const ProcessWait wait = child.wait("read");
  EXPECT_EQ(wait.call, "read of standard input");
  EXPECT_TRUE(wait.may_be_served);
}

TEST_F(Waits, ALockOfAFile) {
  FILE* const file = std::tmpfile();
  ASSERT_EQ(flock(fileno(file), LOCK_EX), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(fileno(file));
  const Child child([&] { flock(open(path.c_str(), O_RDWR), LOCK_EX); });
  const ProcessWait wait = child.wait("flock of /tmp/");
  EXPECT_TRUE(wait.call.ends_with(", which process " + std::to_string(getpid()) + " (" + own_name() + ") holds"))
      << wait.call;
  EXPECT_EQ(wait.holder, getpid());
  EXPECT_FALSE(wait.holder_may_release);
  EXPECT_FALSE(wait.may_be_served);
  std::fclose(file);
}

/// Of fcntl(), in a process of several threads; one of them may release it.
TEST_F(Waits, ALockOfAPartOfAFile) {
  FILE* const file = std::tmpfile();
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(fileno(file), F_SETLK, &lock), 0);
  const Child child([&] { fcntl(fileno(file), F_SETLKW, &lock); });
  EXPECT_EQ(child.wait("fcntl lock").holder, getpid());
  EXPECT_FALSE(child.wait("fcntl lock").holder_may_release);
  std::atomic<bool> end{false};
  std::thread other([&] {
    while (!end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_TRUE(child.wait("fcntl lock").holder_may_release);
  end = true;
  other.join();
  std::fclose(file);
}

/// The kernel does not say who holds it.
TEST_F(Waits, ALockOfAnOpenFileDescription) {
  FILE* const file = std::tmpfile();
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(fileno(file), F_OFD_SETLK, &lock), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(fileno(file));
  const Child child([&] { fcntl(open(path.c_str(), O_RDWR), F_OFD_SETLKW, &lock); });
  const ProcessWait wait = child.wait("fcntl lock");
  EXPECT_TRUE(wait.call.ends_with(", whose holder is not known")) << wait.call;
  EXPECT_EQ(wait.holder, 0);
  std::fclose(file);
}

TEST_F(Waits, AMutexInSharedMemory) {
  auto* const mutex = static_cast<pthread_mutex_t*>(
      mmap(nullptr, sizeof(pthread_mutex_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (const bool robust : {false, true}) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutex_lock(mutex);
    const Child child([&] { pthread_mutex_lock(mutex); });
    const ProcessWait wait = child.wait("wait for a lock, which");
    EXPECT_EQ(wait.call, "wait for a lock, which process " + std::to_string(getpid()) + " (" + own_name() + ") holds");
    EXPECT_EQ(wait.holder, getpid());
    EXPECT_FALSE(wait.holder_may_release);
    pthread_mutex_unlock(mutex);
  }
  munmap(mutex, sizeof *mutex);
}

/// What has no owner, although its word may be like that of a mutex.
TEST_F(Waits, ASemaphoreHasNoHolder) {
  const Child child([] {
    sem_t semaphore;
    sem_init(&semaphore, 1, 0);
    sem_wait(&semaphore);
  });
  const ProcessWait wait = child.wait("wait for a lock");
  EXPECT_EQ(wait.call, "wait for a lock, a condition or a thread (futex)");
  EXPECT_EQ(wait.holder, 0);
}

/// Until another process opens it.
TEST_F(Waits, TheOpeningOfANamedPipe) {
  char folder[] = "/tmp/process_wait.XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/input";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  {
    const Child child([&] { open(path.c_str(), O_RDONLY); });
    EXPECT_EQ(child.wait("open").call, "open of " + path + " (FIFO)");
    const Child relative([&] { (void)!chdir(folder), open("input", O_RDONLY); });
    EXPECT_EQ(relative.wait("open").call, "open of input (FIFO)");
  }
  unlink(path.c_str());
  rmdir(folder);
}

TEST_F(Waits, AConnection) {
  const Child child([] {
    int ends[2];
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) (void)!recv(ends[0], &byte, 1, 0);
  });
  const ProcessWait wait = child.wait("receive");
  EXPECT_EQ(wait.call, "receive from a socket");
  EXPECT_TRUE(wait.may_be_served);
}

TEST_F(Waits, ASecondThreadWithAConnection) {
  const Child child([] {
    std::thread([] {
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
      pollfd entry{ends[0], POLLIN, 0};
      poll(&entry, 1, -1);
    }).join();
  });
  const ProcessWait wait = child.wait("wait for a lock");
  EXPECT_EQ(wait.call, "wait for a lock, a condition or a thread (futex)");
  EXPECT_TRUE(wait.may_be_served);
}

/// Whether it may go on, for those that wait for a lock.
TEST_F(Waits, ALockOfItsOwnForEver) {
  const Child twice([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  });
  EXPECT_FALSE(twice.wait("wait for a lock").may_go_on);
  const Child timed([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const timespec until{time(nullptr) + 1000, 0};
    pthread_mutex_lock(&mutex);
    pthread_mutex_timedlock(&mutex, &until);
  });
  EXPECT_TRUE(timed.wait("wait for a lock").may_go_on);
  const Child joins([] { std::thread([] { sleep(1000); }).join(); });
  EXPECT_TRUE(joins.wait("wait for a lock").may_go_on);
  const Child joins_one_that_waits([] {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    std::thread([&mutex] { pthread_mutex_lock(&mutex); }).join();
  });
  EXPECT_FALSE(joins_one_that_waits.wait("wait for a lock").may_go_on);
  const Child has_a_child([] {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      sleep(1000);
    }
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
  });
  EXPECT_FALSE(has_a_child.wait("wait for a lock").may_go_on) << "no other process has this lock";
  for (const int kind : {MAP_SHARED, MAP_PRIVATE}) {
    const Child shared([kind] {
      pthread_mutexattr_t attributes;
      pthread_mutexattr_init(&attributes);
      pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
      void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
      auto* const mutex = static_cast<pthread_mutex_t*>(memory);
      pthread_mutex_init(mutex, &attributes);
      pthread_mutex_lock(mutex);
      pthread_mutex_lock(mutex);
    });
    EXPECT_EQ(shared.wait("wait for a lock").may_go_on, kind == MAP_SHARED);
  }
  const Child never([] {
    std::promise<int> promise;
    promise.get_future().wait();
  });
  EXPECT_FALSE(never.wait("wait for a lock").may_go_on);
}

/// The zombie of an initial thread that has ended does nothing.
TEST_F(Waits, AnInitialThreadThatHasEnded) {
  const Child left([] {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    std::thread([] { pthread_mutex_lock(&mutex); }).detach();
    syscall(SYS_exit, 0);  // as pthread_exit(), without an exception in the test
  });
  bool may_go_on = true;
  for (int i = 0; i < 500 && may_go_on; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    may_go_on = process_status(left.pid()).state != 'Z' || process_wait(left.pid(), left.pid()).may_go_on;
  }
  EXPECT_FALSE(may_go_on);
  EXPECT_EQ(waitpid(left.pid(), nullptr, WNOHANG), 0) << "its other thread waits";
}

/// A handler may post the semaphore, when a timer or another program sends its signal.
TEST_F(Waits, ASemaphoreThatAHandlerMayPost) {
  const auto may_go_on = [](int caught, bool blocked = false, bool has_a_child = false) {
    const Child child([=] {
      struct sigaction action {};
      action.sa_handler = [](int) {};
      sigaction(caught, &action, nullptr);
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, caught);
      if (blocked) sigprocmask(SIG_BLOCK, &set, nullptr);
      if (has_a_child && fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleep(1000);
      }
      sem_t semaphore;
      sem_init(&semaphore, 0, 0);
      while (sem_wait(&semaphore) != 0) {
      }
    });
    return child.wait("wait for a lock").may_go_on;
  };
  for (const int number : {SIGALRM, SIGUSR2, SIGIO, SIGRTMIN, SIGRTMAX}) {
    EXPECT_TRUE(may_go_on(number)) << number;
    EXPECT_FALSE(may_go_on(number, true)) << number;
  }
  for (const int number : {SIGSEGV, SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) EXPECT_FALSE(may_go_on(number)) << number;
  EXPECT_TRUE(may_go_on(SIGCHLD, false, true));
}

/// UCX has such a thread in each rank.
TEST_F(Waits, AThreadOfTheTransport) {
  const Child child([] {
    std::thread([] {
      pthread_setname_np(pthread_self(), "async");
      int ends[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return;
      pollfd entry{ends[0], POLLIN, 0};
      poll(&entry, 1, -1);
    }).join();
  });
  child.wait("wait for a lock");
  bool served = true;  // until the thread has its name
  for (int i = 0; i < 500 && served; ++i) {
    served = process_wait(child.pid(), child.pid()).may_be_served;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(served);
}

TEST_F(Waits, AChildThatComputesAndOneThatDoesNothing) {
  for (const bool computes : {true, false}) {
    const Child child([computes] {
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile bool always = computes; always;) {
        }
        for (;;) pause();
      }
      waitpid(grandchild, nullptr, 0);
    });
    const ProcessWait before = child.wait("wait for process");
    EXPECT_TRUE(before.call.starts_with("wait for process ")) << before.call;
    EXPECT_FALSE(before.may_be_served);
    EXPECT_NE(before.children, 0u);
    bool changed = false;
    for (int i = 0; i < (computes ? 500 : 30) && !changed; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      changed = process_wait(child.pid(), child.pid()).children != before.children;
    }
    EXPECT_EQ(changed, computes);
  }
}

TEST_F(Waits, AChildWithAConnection) {
  const Child child([] {
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      int ends[2];
      char byte;
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) (void)!recv(ends[0], &byte, 1, 0);
      for (;;) pause();
    }
    waitpid(grandchild, nullptr, 0);
  });
  EXPECT_TRUE(child.wait("wait for process").may_be_served || child.wait("").may_be_served);
}

TEST_F(Waits, NoSuchProcess) { EXPECT_EQ(process_wait(1 << 22, 1 << 22), ProcessWait{}); }

}  // namespace
