# The Debian packages that Juice needs, and how to get them. Sourced by setup and test.

build_packages=(g++ cmake ninja-build nats-server libssl-dev libzstd-dev liblz4-dev libxxhash-dev)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev)

say() { echo "juice: $*" >&2; }

# install_packages PACKAGE...: installs what is missing; without root it says what to run.
install_packages() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "these Debian packages' contents are needed: ${missing[*]}. Install their equivalents and run this again."
    return 1
  fi
  if [ "$(id -u)" != 0 ]; then
    say "system packages are missing, and installing them needs root. Run this, then try again:"
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
    return 1
  fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null &&
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$apt_log" 2>&1 || {
    tail -n 20 "$apt_log" >&2
    say "apt-get install failed; the whole log is $apt_log"
    return 1
  }
}
apt_log=build/apt.log
mkdir -p build

# check_node: Node 20.19 or newer.
check_node() {
  local version
  version=$(node -p 'process.versions.node' 2>/dev/null) || {
    say "Node.js is not installed. Juice needs Node 20.19 or newer with npm."
    return 1
  }
  if ! node -e 'const [a,b]=process.versions.node.split(".").map(Number); process.exit(a>20||(a===20&&b>=19)?0:1)'; then
    say "this is Node $version; Juice needs 20.19 or newer."
    return 1
  fi
}

# install_modules: npm ci, once for each lock file.
install_modules() {
  local stamp=node_modules/.juice-lock
  if ! cmp -s package-lock.json "$stamp"; then
    say "installing npm packages"
    npm ci --no-audit --no-fund --loglevel=error >build/npm.log 2>&1 || {
      tail -n 20 build/npm.log >&2
      say "npm ci failed; the whole log is build/npm.log"
      return 1
    }
    cp package-lock.json "$stamp"
  fi
}
