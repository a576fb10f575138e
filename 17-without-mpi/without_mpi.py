"""Without MPI: the ranks meet at a small key-value store, PyTorch's TCPStore.

    torchrun --nproc_per_node=4 without_mpi.py
    for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 python3 without_mpi.py & done; wait
"""
import datetime
import os
import sys

import torch
import torch.distributed as dist

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import lesson

count = lesson.options(__doc__, count=4).count

# Who am I? A launcher says so, in variables of its own. Slurm comes last, because the
# processes of another launcher see Slurm's variables, too.
names = [("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
         ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
         ("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID")]
who, rank, nranks, local = next(
    ((who, int(os.environ[r]), int(os.environ[n]), int(os.environ.get(place, os.environ[r])))
     for who, r, n, place in names if r in os.environ and n in os.environ), ("nobody", 0, 1, 0))

# The rank within the machine chooses the GPU.
gpus = torch.cuda.device_count()
device = torch.device(f"cuda:{local % gpus}" if gpus else "cpu")
if gpus:
    torch.cuda.set_device(device)

# Where do we meet? Rank 0 serves the store there; torchrun has one of its own at that port.
address = os.environ.get("MASTER_ADDR", "127.0.0.1")
port = int(os.environ.get("MASTER_PORT", 29500)) + ("TORCHELASTIC_RUN_ID" in os.environ)
seconds = int(os.environ.get("STORE_SECONDS", 30))
store = dist.TCPStore(address, port, nranks, is_master=rank == 0, wait_for_workers=False,
                      timeout=datetime.timedelta(seconds=seconds))

# Each rank sets a key and waits for the others', one by one: so it knows who is missing.
# Without wait_for_workers=False rank 0 would only count how many have come.
store.set(f"rank {rank}", "")
for r in range(nranks):
    try:
        store.wait([f"rank {r}"])
    except RuntimeError as why:
        sys.exit(f"rank {rank}: rank {r} has not come ({why})")

# From here on all is as it was. Without a device_id only the first collective makes the
# communicator: then the unique id goes through this store, unseen.
dist.init_process_group("nccl" if gpus else "gloo", store=store, rank=rank, world_size=nranks)
lesson.say_build()
if rank == 0:
    print(f"{nranks} ranks, counted by {who}, met at {address}:{port}")
buf = torch.full((count,), rank + 1.0, device=device)
dist.all_reduce(buf)
lesson.table("After all-reduce:", buf)
lesson.expect(buf, nranks * (nranks + 1) / 2)
exit_code = lesson.verdict("element")

dist.destroy_process_group()
sys.exit(exit_code)
