# What ./build, ./mkernel and .ci/run share. Sourced by them with `root` set to the checkout.

# Prints the feature release of the JDK in folder $1; prints nothing when there is no JDK.
jdk_release() {
  [ -x "$1/bin/javac" ] && [ -x "$1/bin/jlink" ] && [ -r "$1/release" ] || return 0
  sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release"
}

# Prints the folder of a JDK 25 or newer: JAVA_HOME, else the oldest fit one of /usr/lib/jvm, else
# the one on PATH. Fails when there is none.
find_jdk() {
  local dir release best='' best_release=''
  if [ -n "${JAVA_HOME:-}" ]; then
    release=$(jdk_release "$JAVA_HOME")
    if [ "${release:-0}" -ge 25 ]; then
      printf '%s\n' "$JAVA_HOME"
      return 0
    fi
  fi
  for dir in /usr/lib/jvm/*; do
    release=$(jdk_release "$dir")
    if [ "${release:-0}" -ge 25 ] && [ "$release" -lt "${best_release:-1000}" ]; then
      best=$dir best_release=$release
    fi
  done
  if [ -z "$best" ] && dir=$(command -v javac); then
    dir=$(readlink -f "$dir")
    dir=${dir%/bin/javac}
    release=$(jdk_release "$dir")
    [ "${release:-0}" -ge 25 ] && best=$dir
  fi
  [ -n "$best" ] && printf '%s\n' "$best"
}

# Prints one digest over all that the image is made from: names and bytes.
source_digest() {
  (
    cd "$root"
    export LC_ALL=C
    find pom.xml */pom.xml .mvn LICENSE NOTICE build build-tools */src/main -type f -print0 \
      | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
  )
}

# Prints the folder where Maven keeps its downloads: in the home folder of the user, as Java sees it,
# or in the checkout where that cannot be written.
maven_repository() {
  local home
  home=$(getent passwd "$(id -u)" | cut -d: -f6) || true
  if mkdir -p "${home:-/nonexistent}/.m2/repository" 2>/dev/null && [ -w "$home/.m2/repository" ]; then
    printf '%s\n' "$home/.m2/repository"
  else
    printf '%s\n' "$root/.m2/repository"
  fi
}

# Says whether the image was built from the sources with digest $1.
image_is_fresh() {
  local digest=''
  { read -r digest < "$root/distribution/target/mkernel.digest"; } 2>/dev/null || true
  [ "$digest" = "$1" ] && [ -x "$root/distribution/target/mkernel/bin/mkernel" ]
}

# Runs one build at a time in this checkout; whoever comes second waits, and says so.
lock_checkout() {
  exec 9<"$root/pom.xml"
  flock --nonblock 9 && return 0
  printf '%s: another build runs in this checkout; waiting for it\n' "${0##*/}" >&2
  flock 9
}
