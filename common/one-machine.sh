# What Open MPI 4 and 5 need on a machine of your own. Once in each terminal: source common/one-machine.sh
# shellcheck shell=sh

# More ranks than cores, which leave the core to the others while they wait.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export OMPI_MCA_mpi_yield_when_idle=1
# In most containers you are root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# No networks, disks and displays to look for: a program starts in half the time.
export OMPI_MCA_pml=ob1 HWLOC_COMPONENTS=-linuxio HWLOC_PLUGINS_PATH=/nowhere
