import { draftMode } from "next/headers";
import type { ReactNode } from "react";

export const metadata = { title: "Slack Water" };

export default async function Layout({ children }: { children: ReactNode }) {
  const { isEnabled } = await draftMode();
  return (
    <html lang="en">
      <body>
        {isEnabled && <p>These are drafts.</p>}
        {children}
      </body>
    </html>
  );
}
