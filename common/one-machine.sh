# What Open MPI 4 and 5 need on a machine of your own. Once in each terminal: source common/one-machine.sh
# The Makefile and the tests read it, too: so each line is one `export NAME=value`.
# shellcheck shell=sh

# More ranks than cores, which leave the core to the others while they wait, and are bound to none: programs
# that run at the same time would all be bound to the first (PRTE_: Open MPI 5).
export OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_hwloc_base_binding_policy=none
export PRTE_MCA_hwloc_default_binding_policy=none
# In most containers you are root.
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# No networks, disks and displays to look for, and what ranks tell one another stays in memory: a program starts in
# half the time.
export OMPI_MCA_pml=ob1
export HWLOC_COMPONENTS=-linuxio
export HWLOC_PLUGINS_PATH=/nowhere
export PMIX_MCA_gds=hash
