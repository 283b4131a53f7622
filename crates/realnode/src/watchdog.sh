# Runs a program in namespaces of its own, and removes whatever remains of it, also when the process that started this is killed.
#
# usage: watchdog NAME FOLDER PROGRAM [ARGUMENT...]
#   NAME    of the cgroups below which the pods are
#   FOLDER  is removed in the end
#
# Whoever starts this holds its standard input open. When that closes, the program ends.

name=$1 folder=$2
shift 2

# The hierarchies of cgroups: one of version 2, or several of version 1.
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    hierarchies=/sys/fs/cgroup
else
    hierarchies=
    for hierarchy in /sys/fs/cgroup/*; do
        [ -d "$hierarchy" ] && [ ! -L "$hierarchy" ] && hierarchies="$hierarchies $hierarchy"
    done
fi

# Processes leave a cgroup a moment after they were killed.
remove_cgroups() {
    for hierarchy in $hierarchies; do
        tries=0
        while [ -d "$hierarchy/$name" ] && [ "$tries" -lt 100 ]; do
            find "$hierarchy/$name" -depth -type d -exec rmdir {} \; 2>/dev/null
            [ -d "$hierarchy/$name" ] && sleep 0.1
            tries=$((tries + 1))
        done
    done
}

make_cgroups() {
    for hierarchy in $hierarchies; do
        mkdir "$hierarchy/$name" || return
        # A new cpuset of version 1 is empty, and no process can enter it.
        for file in cpuset.cpus cpuset.mems; do
            if [ -f "$hierarchy/$file" ] && [ ! -f "$hierarchy/cgroup.controllers" ]; then
                cat "$hierarchy/$file" >"$hierarchy/$name/$file" || return
            fi
        done
    done
}

remove_cgroups
make_cgroups || exit

exec 3<&0
# The first process of the namespaces adopts orphans and reaps them. With it, all others end.
# shellcheck disable=SC2016
setpriv --pdeathsig KILL unshare --mount --propagation private --net --pid --ipc --uts --fork --kill-child --mount-proc \
    sh -c '"$@"; exit $?' init "$@" 3<&- </dev/null &
namespaces=$!
{ read -r _ <&3 || kill -KILL "$namespaces" 2>/dev/null; } &
watcher=$!
exec 3<&-
wait "$namespaces"
status=$?
kill "$watcher" 2>/dev/null
remove_cgroups
tries=0
while [ -e "$folder" ] && [ "$tries" -lt 100 ]; do
    rm -rf "$folder" 2>/dev/null
    tries=$((tries + 1))
done
exit "$status"
