"""PyTorch on whatever GPU it is given: a float32 and a bfloat16 matrix product against float64 on the CPU,
and ten steps of training a small convolution network with Adam. Prints one JSON object, so that two
runs can be compared."""

import json
import sys

import torch
from torch import nn


def relative(value, reference):
    return (torch.linalg.norm(value.double().cpu() - reference) / torch.linalg.norm(reference)).item()


def products(device):
    generator = torch.Generator().manual_seed(7)
    a = torch.randn(512, 768, generator=generator)
    b = torch.randn(768, 640, generator=generator)
    exact = a.double() @ b.double()
    single = a.to(device) @ b.to(device)
    half = a.to(device, torch.bfloat16) @ b.to(device, torch.bfloat16)
    return {"float32": relative(single, exact), "bfloat16": relative(half, exact)}


def training(device):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    ).to(device)
    images = torch.randn(64, 3, 32, 32).to(device)
    labels = torch.randint(0, 10, (64,)).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(10):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def pinned(device):
    source = torch.arange(1 << 16, dtype=torch.float32).pin_memory()
    there = source.to(device, non_blocking=True) * 2
    back = there.to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return bool((back == source * 2).all())


def driver_libraries():
    with open("/proc/self/maps") as maps:
        return sorted({line.split()[-1] for line in maps if "libcuda.so" in line})


def main():
    if not torch.cuda.is_available():
        sys.exit("torch.cuda.is_available() is false")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    device = torch.device("cuda")
    result = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name(0),
        "count": torch.cuda.device_count(),
        "capability": torch.cuda.get_device_capability(0),
        "products": products(device),
        "pinned": pinned(device),
        "losses": training(device),
        "libcuda": driver_libraries(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
