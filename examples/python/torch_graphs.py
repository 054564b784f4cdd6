"""CUDA graphs of PyTorch: captured in every mode, replayed with other inputs, compared with eager execution."""

import torch

torch.manual_seed(7)
device = torch.device("cuda")


def check(name, got, wanted):
    print(f"{name}: {'ok' if torch.allclose(got, wanted, rtol=1e-4, atol=1e-4) else 'WRONG'}", flush=True)


def work(x, weight):
    return torch.relu(x @ weight).cumsum(0).sin() + x.mean()


weight = torch.randn(64, 64, device=device)
for mode in ("global", "thread_local", "relaxed"):
    x = torch.randn(64, 64, device=device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work(x, weight)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        y = work(x, weight)
    for _ in range(5):
        x.copy_(torch.randn(64, 64, device=device))
        graph.replay()
        check(f"{mode}", y, work(x, weight))
    del graph

# Pinned memory on both sides of a graph, and a fork within the capture.
source = torch.randn(1024).pin_memory()
target = torch.zeros(1024).pin_memory()
buffer = torch.zeros(1024, device=device)
other = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    buffer.copy_(source, non_blocking=True)
    doubled = buffer * 2
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        squared = doubled * doubled
    third = doubled + 1
    torch.cuda.current_stream().wait_stream(other)
    target.copy_(squared + third, non_blocking=True)
for i in range(5):
    source.copy_(torch.randn(1024))
    graph.replay()
    torch.cuda.synchronize()
    check("pinned", target, (source * 2) ** 2 + source * 2 + 1)

# A whole training step, its random numbers included.
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(64, 1))
model.to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, capturable=True)
inputs = torch.randn(128, 32, device=device)
wanted = inputs.sum(1, keepdim=True)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = torch.nn.functional.mse_loss(model(inputs), wanted)
    loss.backward()
    optimizer.step()
first = loss.item() if loss.isfinite() else None
losses = []
for _ in range(200):
    graph.replay()
    losses.append(loss.clone())
torch.cuda.synchronize()
print(f"training: {'ok' if losses[-1] < 0.2 * losses[0] else 'WRONG'}", flush=True)
