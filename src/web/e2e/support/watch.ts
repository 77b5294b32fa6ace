/**
 * Faults that no test permits: a violation of the content security policy, a logged error, an
 * exception, a request to another origin, a script that runs from a name.
 */
import { expect, type BrowserContext, type Page } from "@playwright/test";

export class Watch {
  private readonly seen: string[] = [];
  private readonly excused: RegExp[] = [];

  constructor(
    private readonly context: BrowserContext,
    /** The permitted origins. */
    readonly origins: string[],
  ) {}

  async begin(): Promise<void> {
    await this.context.exposeFunction("granarySaw", (what: string) => this.seen.push(what));
    await this.context.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        window.granarySaw(
          `content security policy: ${event.violatedDirective} ${event.blockedURI}`,
        );
      });
    });
    this.context.on("page", (page) => this.follow(page));
    for (const page of this.context.pages()) this.follow(page);
  }

  private follow(page: Page): void {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") {
        this.seen.push(`console: ${message.text()} ${message.location().url}`);
      }
    });
    page.on("pageerror", (cause) => this.seen.push(`thrown: ${cause.message}`));
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (!this.origins.includes(url.origin) && !["data:", "blob:"].includes(url.protocol)) {
        this.seen.push(`another origin: ${request.url()}`);
      }
    });
  }

  /**
   * Permits messages that a test causes itself, such as the browser's error for an answer of 409.
   */
  excuse(...patterns: RegExp[]): void {
    this.excused.push(...patterns);
  }

  async end(): Promise<void> {
    for (const page of this.context.pages()) {
      const hacked = await page.evaluate(() => window.hacked);
      if (hacked !== undefined) this.seen.push(`a name ran as a script on ${page.url()}`);
    }
    const found = this.seen.filter((what) => !this.excused.some((pattern) => pattern.test(what)));
    expect(found, "what the page must never do").toEqual([]);
  }
}
