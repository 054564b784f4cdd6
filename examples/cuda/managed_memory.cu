// Memory that host and device share: a list of nodes that the host links, the device changes
// through the very same pointers, and the host reads again; and a managed variable of the module.
#include "arrays.h"

struct Node {
    int value;
    Node* next;
};

__managed__ int visited = 0;

// One thread for each list: follows the pointers.
__global__ void walk(Node** lists, int count, int add) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int steps = 0;
    for (Node* node = lists[i]; node != nullptr; node = node->next, ++steps) {
        node->value = 2 * node->value + add;
    }
    atomicAdd(&visited, steps);
}

int main(int argc, char** argv) {
    const int count = argument(argc, argv, 1, 100), length = 20, rounds = 3;
    Node **lists, *nodes;
    void* address;
    CHECK(cudaGetSymbolAddress(&address, visited));
    CHECK(cudaMallocManaged(&lists, count * sizeof *lists));
    CHECK(cudaMallocManaged(&nodes, count * length * sizeof *nodes));
    std::vector<int> expected(count * length);
    for (int i = 0; i < count; ++i) {
        lists[i] = nullptr;
        for (int k = 0; k < length; ++k) {
            Node& node = nodes[k * count + i];
            node = {expected[k * count + i] = i + k, lists[i]};
            lists[i] = &node;
        }
    }
    int wrong = address != &visited;
    for (int round = 0; round < rounds; ++round) {
        visited = 0;
        walk<<<(count + 63) / 64, 64>>>(lists, count, round);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        wrong += visited != count * length;
        for (int i = 0; i < count * length; ++i) {
            expected[i] = 2 * expected[i] + round;
            wrong += nodes[i].value != expected[i];
        }
        // The host changes something in between.
        nodes[round].value = expected[round] = -5;
    }
    CHECK(cudaFree(nodes));
    CHECK(cudaFree(lists));
    std::printf(
        "managed_memory: %s, %d lists of %d nodes, %d rounds, %d values differ from the CPU\n",
        wrong == 0 ? "ok" : "WRONG", count, length, rounds, wrong);
    return wrong == 0 ? 0 : 1;
}
