/* Floor 0. What libgemmshim-graphs.so, which hooks the functions of graphs.def, tells libgemmshim.so of. */
#ifndef GS_GRAPH_EVENTS_H
#define GS_GRAPH_EVENTS_H

#include <stdint.h>

/* What happened, after it succeeded; graphs, executable ones and streams are handles, as numbers. */
typedef enum {
  GS_GRAPH_UNLOADS,  /* asks how many objects were unloaded so far */
  GS_GRAPH_CAPTURE,  /* (stream) asks for its capture's id; 0: none that holds products */
  GS_GRAPH_JOINS,    /* (stream) captures into a graph that was there */
  GS_GRAPH_ENDED,    /* (stream, capture's id, graph) 0: it came to nothing */
  GS_GRAPH_UPDATES,  /* (graph) is about to replace what an executable one holds */
  GS_GRAPH_MADE,     /* (from, to) holds now what the other one holds, and nothing else */
  GS_GRAPH_ADDED,    /* (from, to) holds what the other one holds, too */
  GS_GRAPH_LAUNCHED, /* (executable, stream) */
  GS_GRAPH_GONE      /* (graph), told before */
} gs_graph_event_t;

/* In libgemmshim.so, for libgemmshim-graphs.so alone; thread-safe. */
__attribute__((visibility("default"))) uint64_t gemmshim_graph(gs_graph_event_t event, uint64_t a, uint64_t b,
                                                               uint64_t c);

/* In libgemmshim-graphs.so; its being there says that someone tells. */
extern const char gemmshim_graphs_hooked __attribute__((weak, visibility("default")));

#endif
