/* Replaces itself by a program that is confined to a root, which is read-only, and that runs under another user without rights:
 *
 *     confined ROOT USER GROUP PROGRAM ARGUMENTS
 *
 * In C, because only a process with one thread may enter a user namespace, and because its process id stays the same.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* As a container engine that cannot start a container. */
#define CANNOT_START 125

static int is_root;

static void check(int failed, const char *what) {
  if (failed) {
    fprintf(stderr, "confined: %s: %s\n", what, strerror(errno));
    if (errno == EPERM && !is_root)
      fprintf(stderr, "this machine gives an account other than root no user namespace; on Ubuntu, root allows them with\n"
                      "  sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n");
    exit(CANNOT_START);
  }
}

static void fill(const char *file, const char *text) {
  int it = open(file, O_WRONLY);
  check(it < 0 || write(it, text, strlen(text)) < 0 || close(it) < 0, file);
}

/* A namespace in which this process has all rights, and this account the number USER. */
static void enter_namespace_of(const char *user, const char *group) {
  char users[64], groups[64];
  snprintf(users, sizeof users, "%s %u 1", user, geteuid());
  snprintf(groups, sizeof groups, "%s %u 1", group, getegid());
  check(unshare(CLONE_NEWUSER | CLONE_NEWNS), "cannot enter a user namespace");
  fill("/proc/self/setgroups", "deny");
  fill("/proc/self/uid_map", users);
  fill("/proc/self/gid_map", groups);
}

/* Makes ROOT a read-only mount, visible only here. */
static void protect(const char *root) {
  struct statvfs at;
  check(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "cannot keep the mount to itself");
  check(mount(root, root, NULL, MS_BIND, NULL) || statvfs(root, &at), root);
  /* In a user namespace, these restrictions of the file system have to stay. */
  unsigned long kept = at.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC);
  check(mount(NULL, root, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | kept, NULL), root);
}

int main(int count, char **words) {
  if (count < 5) {
    fprintf(stderr, "usage: confined ROOT USER GROUP PROGRAM ARGUMENTS\n");
    return CANNOT_START;
  }
  const char *root = words[1], *user = words[2], *group = words[3];
  is_root = geteuid() == 0;
  if (!is_root) {
    enter_namespace_of(user, group);
    protect(root);
  } else if (unshare(CLONE_NEWNS) == 0) {
    protect(root);
  } else {
    /* root in a container may not mount: then only the owner of the files protects them. */
    check(errno != EPERM, "cannot enter a mount namespace");
  }
  check(chroot(root) || chdir("/"), root);
  check(is_root && setgroups(0, NULL), "cannot leave the groups");
  check(setresgid(atoi(group), atoi(group), atoi(group)), "cannot change the group");
  check(setresuid(atoi(user), atoi(user), atoi(user)), "cannot change the user");
  unsetenv("PATH");
  execv(words[4], words + 4);
  check(1, words[4]);
}
