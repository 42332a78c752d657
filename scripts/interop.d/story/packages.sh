# shellcheck shell=bash disable=SC2154
# Packages for the clients: reads a client's "needs:" line and installs what it names through the
# ordinary package clients, once, below .interop/. Sourced by scripts/interop, whose settings it uses:
# the directories $cache and $clients_dir, the limit $install_seconds and the exit code $skip_code.

# Ends the client's subshell as skipped, for the reason $1.
skip_client() {
    echo "$1"
    exit "$skip_code"
}

# Makes sure that the programs after -- exist, from Debian's packages before it where they do not.
require_programs() {
    local packages=() program
    while [[ $1 != -- ]]; do
        packages+=("$1")
        shift
    done
    shift
    for program; do
        if ! command -v "$program" >/dev/null; then
            apt_install "${packages[@]}" || skip_client "no $program, and ${packages[*]} cannot be installed"
            command -v "$program" >/dev/null || skip_client "no $program in ${packages[*]}"
        fi
    done
}

# Installs Debian packages; fails where there is no apt-get or no right to use it.
apt_install() {
    command -v apt-get >/dev/null && [[ $(id -u) == 0 ]] || return 1
    [[ -e $cache/apt-updated ]] || apt-get update || return 1
    touch "$cache/apt-updated"
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
}

# Runs a step of an installation with its time limit; a failure skips the client.
install_step() {
    timeout "$install_seconds" "$@" || skip_client "cannot be installed: ${*:1:4} ... failed"
}

install_pip() {
    require_programs python3 python3-venv -- python3
    install_step python3 -m venv "$INTEROP_PACKAGES"
    install_step "$INTEROP_PACKAGES/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

install_npm() {
    require_programs nodejs npm -- node npm
    mkdir -p "$INTEROP_PACKAGES"
    echo '{"private": true}' >"$INTEROP_PACKAGES/package.json"
    install_step npm install --prefix "$INTEROP_PACKAGES" --no-audit --no-fund --loglevel=error "$@"
}

install_gem() {
    command -v gem >/dev/null || skip_client "no gem"
    local wanted
    for wanted; do
        GEM_HOME=$INTEROP_PACKAGES install_step \
            gem install --no-document --conservative "${wanted%:*}" --version "${wanted##*:}"
    done
}

install_composer() {
    command -v composer >/dev/null || skip_client "no composer"
    mkdir -p "$INTEROP_PACKAGES"
    COMPOSER_ALLOW_SUPERUSER=1 install_step composer require --quiet --no-interaction --ignore-platform-reqs \
        --working-dir "$INTEROP_PACKAGES" "$@"
}

install_cpan() {
    command -v cpanm >/dev/null || skip_client "no cpanm"
    install_step cpanm --quiet --notest --local-lib-contained "$INTEROP_PACKAGES" "$@"
}

install_go() {
    command -v go >/dev/null || skip_client "no go"
    mkdir -p "$INTEROP_PACKAGES"
    cp "$clients_dir/story/go.mod" "$INTEROP_PACKAGES"
    (cd "$INTEROP_PACKAGES" && install_step go get "$@")
}

# Builds the Go client $1 of file $2.
build_go() {
    cp "$clients_dir/story/adapter.go" "$INTEROP_PACKAGES"
    timeout "$install_seconds" go build -C "$INTEROP_PACKAGES" -o "$1" "$2"
}

install_maven() {
    command -v javac >/dev/null || skip_client "no javac"
    require_programs maven -- mvn
    local package group name version dependencies=
    # The last one keeps silent what the libraries say of the logging that nobody has asked for.
    for package in "$@" org.slf4j:slf4j-nop:2.0.17; do
        IFS=: read -r group name version <<<"$package"
        dependencies+="<dependency><groupId>$group</groupId><artifactId>$name</artifactId><version>$version</version></dependency>"
    done
    mkdir -p "$INTEROP_PACKAGES"
    cat >"$INTEROP_PACKAGES/pom.xml" <<END
<project>
  <modelVersion>4.0.0</modelVersion><groupId>story</groupId><artifactId>story</artifactId><version>1</version>
  <packaging>pom</packaging><dependencies>$dependencies</dependencies>
</project>
END
    install_step mvn --quiet --batch-mode --file "$INTEROP_PACKAGES/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DoutputDirectory="$INTEROP_PACKAGES/jars"
}

# Compiles the Java client of file $2.
build_maven() {
    timeout "$install_seconds" javac -nowarn -XDsuppressNotes -d "$INTEROP_PACKAGES/classes" \
        -cp "$INTEROP_PACKAGES/jars/*" -sourcepath "$clients_dir/story" "$2"
}

# Builds the C++ client $1 of file $2 with the libraries in the other words, which nobody installs here.
build_cpp() {
    local name=$1 file=$2 flags
    shift 2
    command -v g++ >/dev/null || skip_client "no g++"
    pkg-config --exists "$@" || skip_client "no $*, or pkg-config does not know where"
    [[ $INTEROP_PACKAGES/$name -ot $file ]] || return 0
    mkdir -p "$INTEROP_PACKAGES"
    read -ra flags < <(pkg-config --cflags --libs "$@" | tr '\n' ' ')
    timeout "$install_seconds" g++ -std=c++17 "-DVERSION=\"$(pkg-config --modversion "$1")\"" \
        -o "$INTEROP_PACKAGES/$name" "$file" "${flags[@]}"
}

# Builds the Rust client $1; all of them share one manifest and so one build of their dependencies.
install_cargo() {
    command -v cargo >/dev/null || skip_client "no cargo"
    local manifest=$clients_dir/story/Cargo.toml
    install_step cargo fetch --quiet --manifest-path "$manifest"
    # What does not compile is a fault of ours and fails the client.
    timeout "$install_seconds" cargo build --quiet --manifest-path "$manifest" \
        --target-dir "$INTEROP_PACKAGES" --bin "$1"
}

# Installs what file $2 of client $1 needs and exports the place as INTEROP_PACKAGES.
install_packages() {
    local name=$1 file=$2 needs kind wanted stamp
    needs=$(sed -n 's/^[^a-z]*needs: //p' "$file" | head -n 1)
    kind=${needs%% *}
    read -ra wanted <<<"${needs#"$kind"}"
    case $kind in
    apt)
        # For a runtime the package may be there without a program of its own: ask dpkg.
        dpkg --status "${wanted[@]}" >/dev/null 2>&1 || apt_install "${wanted[@]}" ||
            skip_client "no ${wanted[*]}, and Debian's packages cannot be installed"
        return
        ;;
    cargo)
        export INTEROP_PACKAGES=$cache/target
        install_cargo "$name"
        return
        ;;
    pkg-config)
        export INTEROP_PACKAGES=$cache/$kind/$name
        build_cpp "$name" "$file" "${wanted[@]}"
        return
        ;;
    pip | npm | gem | composer | cpan | go | maven) ;;
    *)
        echo "$file: needs what? '$needs'"
        return 1
        ;;
    esac
    export INTEROP_PACKAGES=$cache/$kind/$name
    case $kind in
    gem) export GEM_HOME=$INTEROP_PACKAGES ;;
    cpan) export PERL5LIB=$INTEROP_PACKAGES/lib/perl5 ;;
    esac
    stamp=$INTEROP_PACKAGES/installed-for
    if [[ ! -f $stamp || $(<"$stamp") != "$needs" ]]; then
        rm -rf "$INTEROP_PACKAGES"
        "install_$kind" "${wanted[@]}"
        printf '%s\n' "$needs" >"$stamp"
    fi
    case $kind in
    # What does not compile is a fault of ours and fails the client.
    go | maven) "build_$kind" "$name" "$file" ;;
    esac
}
