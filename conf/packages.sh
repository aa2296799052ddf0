# shellcheck shell=bash disable=SC2154 # Variables are of scripts/release, which sources this.
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
machine=$(uname -m)

# Builds with the paths of this machine replaced. With `--target` the program is linked statically: with it alone the flags spare build scripts.
build() {
  target=${CARGO_TARGET_DIR:-target}
  host=$(rustc -vV | sed -n 's/^host: //p')
  local flags=("--remap-path-prefix=$PWD=/oxkeeper" "--remap-path-prefix=$(realpath -m "$target")=/target"
    "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo")
  [ $# = 0 ] || flags+=(-Ctarget-feature=+crt-static)
  # Without a repository of its own the program's date is that of the sources, as build.rs sees it.
  git ls-files --error-unmatch build.rs > /dev/null 2>&1 || export OXKEEPER_BUILT_ON="${OXKEEPER_BUILT_ON:-$(date -u -d "@$SOURCE_DATE_EPOCH" '+%Y-%m-%d %H:%M UTC')}"
  cargo fetch --locked
  CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${flags[*]}") cargo build --release --locked --offline --bin oxkeeper "$@"
}

# A tar of the folder $1 below $work whose bytes depend on names and contents alone.
packed() {
  chmod -R u=rwX,go=rX "$work/$1"
  tar -C "$work" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$1"
}

# $1: its name, $2: the program. Laid out as ZooKeeper's, so that `ln -sfn` swaps one for the other; like there, there is a sample and no zoo.cfg.
tarball() {
  local root=$work/$1
  scripts/lay-out "$root" "$2"
  mv "$root/conf/zoo.cfg" "$root/conf/zoo_sample.cfg"
  cp -r conf/prometheus conf/grafana conf/oxkeeper.service "$root/conf/"
  documents "$root/docs"
  for_shells "$root/share" zsh/site-functions
  cp LICENSE NOTICE README.md CHANGELOG.md ARCHITECTURE.md "$root/"
  scripts/packaged-links "$root"
  packed "$1" | gzip -n -9 > "$to/$1.tar.gz"
}

documents() {
  mkdir -p "$1"
  cp -r docs/*.md docs/zookeeper docs/bench.svg "$work/third-party.txt" "$1/"
  rm "$1/parity.md" # What a developer's tests prove; three times as large as the other pages.
}

# Man pages and completions below $1, where man and the shells look below /usr/share and /usr/local/share; $2: where zsh does.
for_shells() {
  mkdir -p "$1/man/man8" "$1/bash-completion/completions" "$1/$2" "$1/fish/vendor_completions.d"
  "$work/dynamic" generate man "$1/man/man8"
  cp conf/man/oxkeeper.8 "$1/man/man8/"
  "$work/dynamic" generate completions bash > "$1/bash-completion/completions/oxkeeper"
  "$work/dynamic" generate completions zsh > "$1/$2/_oxkeeper"
  "$work/dynamic" generate completions fish > "$1/fish/vendor_completions.d/oxkeeper.fish"
}

# By dpkg-deb alone: of what debhelper and cargo-deb do, this needs a sum per file, an archive without times, and the scripts of conf/debian.
debian_package() {
  local architecture root=$work/deb
  architecture=$(dpkg --print-architecture)
  local doc=$root/usr/share/doc/oxkeeper share=$root/usr/share/oxkeeper
  mkdir -p "$root/DEBIAN" "$share/bin" "$share/libexec/bin" "$root/etc/oxkeeper" "$doc"
  install -D -m 755 "$work/dynamic" "$root/usr/bin/oxkeeper"
  cp conf/bin/*.sh "$share/bin/"
  cp -r conf/prometheus conf/grafana "$share/"
  ln -s ../../../../bin/oxkeeper "$share/libexec/bin/java"
  ln -s /etc/oxkeeper "$share/conf"
  ln -s /var/log/oxkeeper "$share/logs"
  sed 's|^dataDir=.*|dataDir=/var/lib/oxkeeper|' conf/zoo.cfg > "$root/etc/oxkeeper/zoo.cfg"
  cp conf/debian/flags "$root/etc/oxkeeper/flags"
  install -D -m 644 conf/oxkeeper.service "$root/lib/systemd/system/oxkeeper.service"
  install -D -m 644 conf/debian/sysusers.conf "$root/usr/lib/sysusers.d/oxkeeper.conf"
  documents "$doc"
  for_shells "$root/usr/share" zsh/vendor-completions
  gzip -n -9 "$root"/usr/share/man/man8/*
  cp NOTICE "$doc/"
  cat conf/debian/copyright > "$doc/copyright"
  cp CHANGELOG.md ARCHITECTURE.md "$doc/"
  scripts/packaged-links "$doc"
  {
    printf 'oxkeeper (%s) unstable; urgency=medium\n\n  * CHANGELOG.md beside this file tells what changed for operators.\n\n' "$version"
    printf ' -- %s  %s\n' "$(sed -n 's/^Maintainer: //p' conf/debian/control)" "$(date -R -u -d "@$SOURCE_DATE_EPOCH")"
  } | gzip -n -9 > "$doc/changelog.gz"
  find "$root/etc" -type f -printf '/etc/%P\n' | sort > "$root/DEBIAN/conffiles"
  cp conf/debian/postinst conf/debian/prerm conf/debian/postrm "$root/DEBIAN/"
  (cd "$root" && find usr lib -type f | sort | xargs md5sum > DEBIAN/md5sums)
  chmod -R u=rwX,go=rX "$root"; chmod 755 "$root"/DEBIAN/p*
  sed -e "s|@VERSION@|$version|; s|@ARCHITECTURE@|$architecture|; s|@DEPENDS@|$(shared_libraries)|" \
    -e "s|@SIZE@|$(du -sk --apparent-size "$root" | cut -f1)|" conf/debian/control > "$root/DEBIAN/control"
  find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group -Zxz -z9 --threads-max=1 --build "$root" "$to/oxkeeper_${version}_$architecture.deb" > /dev/null
}

# The packages that the program's shared libraries are in, at the versions that it needs.
shared_libraries() {
  mkdir -p "$work/shlibs/debian" && : > "$work/shlibs/debian/control"
  (cd "$work/shlibs" && dpkg-shlibdeps -O -e"$work/dynamic" 2> /dev/null) | sed -n 's/^shlibs:Depends=//p'
}

# Debian's minimal system with what probes and operators' scripts call; kept, since later fetches may bring other versions.
fetch_base() {
  local kept=${XDG_CACHE_HOME:-$HOME/.cache}/oxkeeper/image-base.tar
  if [ ! -e "$kept" ]; then
    mkdir -p "$(dirname "$kept")"
    mmdebstrap --quiet --variant=essential --include=bash,ca-certificates,curl,gosu,libgcc-s1,netcat-openbsd,procps,wget \
      bookworm "$kept.new.tar" >&2
    mv "$kept.new.tar" "$kept"
  fi
  echo "$kept"
}

# Sizes beside what was wanted of them.
report() {
  local at
  mb() { awk -v bytes="$(stat -c %s "$1")" 'BEGIN { printf "%.2f MB", bytes / 1e6 }'; }
  echo "stripped program      $(mb "$work/dynamic")   (wanted: 12 MB)"
  for at in *.tar.gz; do echo "$at   $(mb "$at")   (wanted: 6 MB)"; done
  for at in *.deb; do echo "$at   $(mb "$at")"; done
  for at in *-image*; do
    [ ! -d "$at" ] || echo "$at   $(du -sb "$at" | awk '{ printf "%.2f MB", $1 / 1e6 }')   (wanted of the static one: 14 MB)"
  done
}
