/** The parts of Grafana's dashboards that the importer reads. Everything may be missing or wrong. */

export type Json = Record<string, unknown>;

export const objectOf = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};

export const listOf = (value: unknown): Json[] => (Array.isArray(value) ? value.map(objectOf) : []);

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export const numberOf = (value: unknown, fallback: number): number =>
  typeof value === "number" && Number.isFinite(value) ? value : fallback;

/** A dashboard of Grafana, by the fields that only Grafana writes. */
export function isGrafana(value: unknown): boolean {
  const json = objectOf(objectOf(value)["dashboard"] ?? value);
  return !("schema" in json) && ("schemaVersion" in json || "templating" in json);
}

/** Things that were not taken over, each with the places where they occur. */
export class Notes {
  private readonly places = new Map<string, string[]>();

  add(text: string, place = ""): void {
    const known = this.places.get(text) ?? [];
    if (place !== "" && !known.includes(place)) known.push(place);
    this.places.set(text, known);
  }

  /** `Thresholds are not drawn: CPU, Memory and 3 more` */
  lines(): string[] {
    return [...this.places].map(([text, places]) => {
      const more = places.length - PLACES_MAX;
      const named = places.slice(0, PLACES_MAX).join(", ");
      return named === "" ? text : `${text}: ${named}${more > 0 ? ` and ${more} more` : ""}`;
    });
  }
}

const PLACES_MAX = 5;
