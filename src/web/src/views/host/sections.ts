/** The charts of a host, in the order in which one looks for a fault. */
import type { ChartProps } from "../../chart/chart";
import type { MetricQuery } from "../../api/types";
import { tagsOf } from "../../queries/tags";
import { byOperation, percent, sharesOf } from "./derive";

export type HostChart = Omit<ChartProps, "frame">;

/** A chart of any host, with its metrics instead of queries. */
type Plain = Omit<HostChart, "queries"> & { metrics: readonly string[] };

export interface Section {
  title: string;
  charts: HostChart[];
}

const CPU = ["user", "nice", "kernel", "iowait", "irq", "softirq", "steal", "idle"].map(
  (state) => `system_cpu_${state}`,
);

/** The charts of the processes that use the most, which other charts show at the pointer. */
const CPU_OF_PROCESSES = "CPU of processes";
const MEMORY_OF_PROCESSES = "Memory of processes";
const IO_OF_PROCESSES = "I/O of processes";

const SECTIONS: { title: string; charts: Plain[] }[] = [
  {
    title: "Processor",
    charts: [
      {
        title: "CPU",
        metrics: CPU,
        stacked: true,
        axisTop: 100,
        derive: sharesOf(CPU),
        display: "avg_per_sec",
        beside: CPU_OF_PROCESSES,
      },
      {
        title: "Load",
        metrics: ["system_load_1m", "system_load_5m", "system_load_15m"],
        band: false,
        beside: CPU_OF_PROCESSES,
      },
      {
        title: CPU_OF_PROCESSES,
        labels: ["process"],
        metrics: ["process_top_cpu"],
        derive: percent,
        display: "avg_per_sec",
      },
      {
        title: "Processes",
        metrics: ["system_processes_running", "system_processes_blocked"],
        band: false,
      },
      { title: "Context switches", metrics: ["system_context_switches", "system_interrupts"] },
    ],
  },
  {
    title: "Memory",
    charts: [
      {
        title: "Memory",
        metrics: ["anonymous", "slab", "page_tables", "kernel_stack", "buffers"]
          .map((part) => `system_memory_${part}`)
          .concat("system_memory_cached", "system_memory_free"),
        stacked: true,
        band: false,
        beside: MEMORY_OF_PROCESSES,
      },
      {
        title: "Memory used",
        metrics: ["used", "available", "total"].map((part) => `system_memory_${part}`),
        band: false,
        beside: MEMORY_OF_PROCESSES,
      },
      {
        title: MEMORY_OF_PROCESSES,
        labels: ["process"],
        metrics: ["process_top_memory_resident"],
        band: false,
      },
      { title: "Swap", metrics: ["swap_usage_used", "swap_usage_total"] },
      {
        title: "Swapping",
        metrics: ["swap_io_in", "swap_io_out"],
        beside: MEMORY_OF_PROCESSES,
      },
    ],
  },
  {
    title: "Network",
    charts: [
      { title: "Network received", labels: ["interface"], metrics: ["system_network_bytes_in"] },
      { title: "Network sent", labels: ["interface"], metrics: ["system_network_bytes_out"] },
      {
        title: "Network errors and drops",
        metrics: ["errors_in", "errors_out", "drops_in", "drops_out"].map(
          (what) => `system_network_${what}`,
        ),
      },
      { title: "TCP connections", labels: ["state"], metrics: ["tcp_connections"], band: false },
      {
        title: "TCP errors",
        metrics: ["tcp_segments_retransmitted", "tcp_attempt_fails", "tcp_established_resets"],
      },
    ],
  },
  {
    title: "Disks",
    charts: [
      {
        title: "Disk operations",
        metrics: ["system_disk_iops_read", "system_disk_iops_write"],
        beside: IO_OF_PROCESSES,
      },
      {
        title: "Disk bytes",
        metrics: ["system_disk_bytes_read", "system_disk_bytes_written"],
        beside: IO_OF_PROCESSES,
      },
      {
        title: "Disk latency",
        metrics: [
          "system_disk_latency_read",
          "system_disk_iops_read",
          "system_disk_latency_write",
          "system_disk_iops_write",
        ],
        derive: byOperation,
        display: "avg_per_sec",
      },
      {
        title: "Disk utilisation",
        labels: ["disk"],
        metrics: ["system_disk_utilization"],
        derive: percent,
        display: "avg_per_sec",
        beside: IO_OF_PROCESSES,
      },
      {
        title: IO_OF_PROCESSES,
        labels: ["process"],
        metrics: ["process_top_io"],
        display: "avg_per_sec",
      },
    ],
  },
  {
    title: "File systems",
    charts: [
      {
        title: "File systems used",
        labels: ["mount"],
        metrics: ["disk_partition_space_percent_used"],
        band: false,
      },
      {
        title: "File systems free",
        labels: ["mount"],
        metrics: ["disk_partition_space_free"],
        band: false,
      },
    ],
  },
  {
    title: "Pressure",
    charts: [
      {
        title: "Pressure",
        metrics: ["cpu", "memory", "io"].map((what) => `system_pressure_${what}_some`),
      },
    ],
  },
];

/** The metrics at the top of the view that every host agent sends. */
export const FIRST_METRICS: ReadonlySet<string> = new Set(
  SECTIONS.flatMap(({ charts }) => charts)
    .slice(0, 2)
    .flatMap(({ metrics }) => metrics),
);

/** The parameters that request the series of a host. */
export function tagsOfHost(host: string): string {
  return tagsOf(new Map([["host", host]]));
}

/** The sections for which a host has metrics. */
export function sectionsOf(host: string, metrics: ReadonlySet<string>): Section[] {
  const tags = tagsOfHost(host);
  const query = (metric: string): MetricQuery => ({ kind: "metric", metric, tags });
  return SECTIONS.map(({ title, charts }) => ({
    title,
    charts: charts
      .map((chart) => ({ ...chart, metrics: chart.metrics.filter((name) => metrics.has(name)) }))
      .filter((chart) => chart.metrics.length > 0)
      .map(({ metrics, ...chart }) => ({ ...chart, queries: metrics.map(query) })),
  })).filter(({ charts }) => charts.length > 0);
}
