/* Which graph holds which products: exact, and bounded, whatever a program does with graphs. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "device.h"
#include "graph_events.h"
#include "graphs.h"
#include "histogram.h"
#include "options.h"

static cuuint64_t capture; /* in progress; 0: none */

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                             const CUgraphNode **dependencies, size_t *count) {
  (void)stream, (void)graph, (void)dependencies, (void)count;
  *status = capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  *id = capture;
  return CUDA_SUCCESS;
}

static void setup(void) {
  setenv("GEMMSHIM_SHAPES", "4096", 1);
  gs_options_read();
  gs_histogram_open();
  gs_driver.gs_cuStreamGetCaptureInfo_v2 = capture_info;
}

TestSuite(graphs, .init = setup);

static int slot_of(int n) {
  gs_gemm_t g = {.m = 64, .n = n, .k = 64, .batch = 1};
  return gs_histogram_slot(&g);
}

/* A graph of so many products of each n from 1. */
static void captured(uint64_t graph, int shapes, int times) {
  static cuuint64_t id;
  capture = ++id;
  for (int n = 1; n <= shapes; n++)
    for (int i = 0; i < times; i++) gs_graphs_captured(NULL, slot_of(n));
  cr_assert_eq(gemmshim_graph(GS_GRAPH_CAPTURE, 0, 0, 0), capture);
  capture = 0;
  gemmshim_graph(GS_GRAPH_ENDED, 0, id, graph);
}

static void launch(uint64_t exec) {
  gemmshim_graph(GS_GRAPH_LAUNCHED, exec, 0, 0);
}

static uint64_t replayed(int n) {
  return gs_histogram_at(slot_of(n))->replayed;
}
static uint64_t traced(int n) {
  return gs_histogram_at(slot_of(n))->traced;
}

Test(graphs, a_launch_counts_what_the_graph_holds) {
  captured(16, 100, 3);
  gemmshim_graph(GS_GRAPH_MADE, 16, 32, 0);
  gemmshim_graph(GS_GRAPH_GONE, 16, 0, 0);
  launch(16);
  for (int i = 0; i < 5; i++) launch(32);
  launch(48);
  for (int n = 1; n <= 100; n++) cr_assert(traced(n) == 3 && replayed(n) == 15, "%d", n);
  cr_assert_eq(replayed(101), 0);
}

/* What is shared is copied before it grows. */
Test(graphs, a_graph_that_grows_leaves_its_copies_alone) {
  captured(16, 4, 1);
  captured(17, 9, 1);
  gemmshim_graph(GS_GRAPH_MADE, 16, 32, 0);
  gemmshim_graph(GS_GRAPH_ADDED, 17, 16, 0);
  gemmshim_graph(GS_GRAPH_MADE, 16, 33, 0);
  launch(32), launch(33);
  for (int n = 1; n <= 9; n++) cr_assert_eq(replayed(n), n <= 4 ? 3 : 1, "%d", n);
}

/* Handles come again, or never again; what is gone takes no room. */
Test(graphs, S2_graphs_that_are_gone_take_no_room) {
  for (uint64_t i = 0; i < 30000; i++) {
    captured(2 * i + 2, 2, 1);
    gemmshim_graph(GS_GRAPH_MADE, 2 * i + 2, 2 * i + 3, 0);
    gemmshim_graph(GS_GRAPH_GONE, 2 * i + 2, 0, 0);
    launch(2 * i + 3);
    gemmshim_graph(GS_GRAPH_GONE, 2 * i + 3, 0, 0);
  }
  cr_assert(traced(1) == 30000 && replayed(1) == 30000, "%lu", (unsigned long)traced(1));
}

/* Beyond the bound products are not traced, so that their replays are unknown rather than none. */
Test(graphs, graphs_beyond_the_bound_are_unknown) {
  enum { GRAPHS = 20000 };
  for (uint64_t i = 1; i <= GRAPHS; i++) captured(i, 1, 2);
  for (uint64_t i = 1; i <= GRAPHS; i++) launch(i);
  cr_assert(traced(1) > 2 * 1000 && traced(1) < 2 * GRAPHS, "%lu", (unsigned long)traced(1));
  cr_assert_eq(replayed(1), traced(1));
  for (uint64_t i = 1; i <= GRAPHS; i++) gemmshim_graph(GS_GRAPH_GONE, i, 0, 0);
  uint64_t before = traced(1);
  captured(1, 1, 2);
  cr_assert_eq(traced(1), before + 2, "there is room again");
}

Test(graphs, products_beyond_the_bound_are_unknown) {
  enum { GRAPHS = 200, SHAPES = 1500 };
  for (uint64_t i = 1; i <= GRAPHS; i++) captured(i, SHAPES, 1);
  uint64_t sum = 0;
  for (int n = 1; n <= SHAPES; n++) sum += traced(n);
  cr_assert(sum > 10000 && sum < GRAPHS * SHAPES, "%lu", (unsigned long)sum);
}

/* Captures of which no end is seen (a runtime that is linked statically) do not crowd others out. */
Test(graphs, captures_without_an_end_give_way) {
  for (capture = 1000; capture < 6000; capture++) gs_graphs_captured(NULL, slot_of(1));
  for (capture = 9000; capture < 9010; capture++) gs_graphs_captured(NULL, slot_of(2));
  for (uint64_t id = 9000; id < 9010; id++) gemmshim_graph(GS_GRAPH_ENDED, 0, id, id);
  cr_assert(traced(1) == 0 && traced(2) == 10, "%lu, %lu", (unsigned long)traced(1),
            (unsigned long)traced(2));
}

Test(graphs, S2_a_launch_under_capture_is_part_of_the_graph) {
  captured(16, 1, 1);
  capture = 500;
  gs_graphs_captured(NULL, slot_of(2));
  launch(16), launch(16);
  capture = 0;
  gemmshim_graph(GS_GRAPH_ENDED, 0, 500, 17);
  launch(17);
  cr_assert(replayed(1) == 2 && replayed(2) == 1 && traced(1) == 1, "%lu", (unsigned long)replayed(1));
}
