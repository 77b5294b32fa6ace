/** The page's icons, as paths of a 20 by 20 grid. */

const PATHS = {
  grain:
    "M10 2c1.8 1.5 1.8 4 0 5.600-1.800-1.600-1.800-4.100 0-5.600zM5 7c2.400 0 4 1.700 4 4-2.400 0-4-1.600-4-4zm10 0c0 2.400-1.600 4-4 4 0-2.300 1.600-4 4-4zM5 12c2.400 0 4 1.700 4 4-2.400 0-4-1.600-4-4zm10 0c0 2.400-1.600 4-4 4 0-2.300 1.600-4 4-4zM10 9v9",
  fleet: "M3 4h14v4H3zM3 12h14v4H3zM6 6h.01M6 14h.01",
  explore: "M3 16l4-6 4 3 6-9M3 3v14h14",
  dashboards: "M3 3h6v8H3zM11 3h6v4h-6zM11 9h6v8h-6zM3 13h6v4H3z",
  storage:
    "M3 5c0-1.500 3-2.500 7-2.500s7 1 7 2.500-3 2.500-7 2.500S3 6.500 3 5zm0 0v10c0 1.500 3 2.500 7 2.500s7-1 7-2.500V5M3 10c0 1.500 3 2.500 7 2.500s7-1 7-2.500",
  status: "M2 10h4l2-6 4 12 2-6h4",
  sun: "M10 6.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM10 2v2M10 16v2M2 10h2M16 10h2M4.300 4.300l1.400 1.400M14.300 14.300l1.400 1.400M4.300 15.700l1.400-1.400M14.300 5.700l1.400-1.400",
  moon: "M16.500 12.500A7 7 0 0 1 7.500 3.500a7 7 0 1 0 9 9z",
  warning: "M10 3l8 14H2zM10 8v4M10 14.500v.01",
  search: "M9 3a6 6 0 1 0 0 12A6 6 0 0 0 9 3zM13.500 13.500L18 18",
  close: "M5 5l10 10M15 5L5 15",
  plus: "M10 4v12M4 10h12",
  minus: "M4 10h12",
  check: "M4 10.500l4 4 8-9",
  download: "M10 3v10M6 9l4 4 4-4M3 17h14",
  expand: "M12 3h5v5M8 17H3v-5M17 3l-6 6M3 17l6-6",
  link: "M8 12l4-4M7 9l-2.500 2.500a2.800 2.800 0 0 0 4 4L11 13M13 11l2.500-2.500a2.800 2.800 0 0 0-4-4L9 7",
  more: "M4 10h.01M10 10h.01M16 10h.01",
  up: "M5 12l5-5 5 5",
  down: "M5 8l5 5 5-5",
  left: "M12 5l-5 5 5 5",
  right: "M8 5l5 5-5 5",
  refresh: "M16 8a6.500 6.500 0 1 0 .5 4M16.500 3.500V8H12",
  flag: "M5 18V3h9l-2 3.500 2 3.500H5",
  table: "M3 4h14v12H3zM3 8h14M3 12h14M8 4v12",
  pencil: "M4 16l1-4L14 3l3 3-9 9z",
  trash: "M4 5h12M8 5V3h4v2M6 5l1 12h6l1-12",
  drag: "M7 4h.01M13 4h.01M7 10h.01M13 10h.01M7 16h.01M13 16h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
