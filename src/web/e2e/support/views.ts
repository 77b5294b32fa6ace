/** Every view of the page, with its address. */
import { HOST } from "./data";

export const VIEWS: { name: string; path: string; link?: string }[] = [
  { name: "fleet", path: "/", link: "Fleet" },
  { name: "host", path: `/hosts/${HOST}` },
  { name: "explore", path: "/explore", link: "Explore" },
  { name: "dashboards", path: "/dashboards", link: "Dashboards" },
  { name: "dashboard", path: "/dashboards/hosts" },
  { name: "storage", path: "/storage", link: "Storage" },
  { name: "status", path: "/status", link: "Status" },
  { name: "not there", path: "/explore/nothing" },
];
