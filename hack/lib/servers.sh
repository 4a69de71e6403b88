# Functions for the scripts that build the servers of tests, which source this file.

servers=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../e2e/servers" && pwd)

# pinned prints the version that the go.mod of server $1 pins for module $2.
pinned() {
	awk -v module="$2" '$1 == "require" { $1 = $2; $2 = $3 } $1 == module { print $2; exit }' "$servers/$1/go.mod"
}

# missing prints the programs of $2 and so on that folder $1 lacks.
missing() {
	local folder=$1 program
	shift
	for program in "$@"; do
		[[ -x $folder/$program ]] || printf '%s ' "$program"
	done
}

# cached prints the cache folder for version $2 of the programs $1.
cached() {
	echo "${XDG_CACHE_HOME:-$HOME/.cache}/direct-secrets/$1/$2"
}

# once ensures that the folder $2 has the programs $3 and so on. $1 describes them in messages. For missing
# programs it calls the function `build` of the script with a target folder and their names.
once() {
	local what=$1 folder=$2 lacks program
	shift 2
	if [[ -z $(missing "$folder" "$@") ]]; then return; fi

	mkdir -p "$folder"
	# A second caller waits here instead of building the same programs. Without flock both build, which the
	# renames below make safe.
	if command -v flock >/dev/null; then
		exec 9>"$folder/.lock"
		flock -n 9 || { echo "Waiting for another build of $what." >&2 && flock 9; }
	fi
	read -ra lacks <<<"$(missing "$folder" "$@")"
	if ((${#lacks[@]} == 0)); then return; fi

	scratch=$(mktemp -d "$folder/.build.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	echo "Looking for $what; what cannot be had is built into $folder." >&2
	echo "This takes some minutes and happens once." >&2
	build "$scratch" "${lacks[@]}"
	for program in "${lacks[@]}"; do
		mv -f "$scratch/$program" "$folder/$program"
	done
}

# compile builds program $1 in the folder of server $2. The arguments $3 and so on are those of `go build`, the last being the
# package. The result is for this machine, whatever platform the caller's environment selects.
compile() {
	local name=$1 server=$2 package=${*: -1}
	shift 2
	export CGO_ENABLED=0 GOOS='' GOARCH='' GOFLAGS='-mod=readonly -buildvcs=false -trimpath' GOWORK=off
	echo "  $name: downloading modules" >&2
	go -C "$servers/$server" build -v "$@" 2>&1 |
		progress "$name" "$(go -C "$servers/$server" list -deps "$package" 2>/dev/null | wc -l)"
}

# kubernetes_flags prints the linker's flags for programs of Kubernetes of version $1. The API server refuses to start when its
# version does not parse.
kubernetes_flags() {
	local major minor package flags='-s -w'
	IFS=. read -r major minor _ <<<"${1#v}"
	for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $package.gitVersion=$1 -X $package.gitMajor=$major -X $package.gitMinor=$minor"
	done
	echo "$flags"
}

# progress turns the package names of `go build -v` into a line for every 100 packages. $2 is the number of packages.
progress() {
	awk -v name="$1" -v all="${2:-some}" '
		/^go: downloading/ { if (++got % 50 == 0) say(got " modules downloaded"); next }
		/^[A-Za-z0-9.\/_-]+$/ { if (++built % 100 == 0) say(built " of " all " packages compiled"); next }
		{ print; fflush() }
		function say(what) { print "  " name ": " what; fflush() }' >&2
}
